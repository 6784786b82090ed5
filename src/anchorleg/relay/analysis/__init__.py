"""Analyses of the graph language: questions about programs that change nothing."""
from .annotated_regions import AnnotatedRegion, AnnotatedRegionSet
from .call_graph import CallGraph
from .counting import count_layers, get_total_mac_number, list_fake_quantized_op_freqs, list_op_freqs, search_fc_transpose
from .extract import extract_fused_functions, extract_intermdeiate_expr, extract_intermediate_expr, get_calibration_data
from .feature import Feature, check_feature, detect_feature
from .kinds import check_constant, check_kind
from .matching import unmatched_cases
from .scopes import check_basic_block_normal_form, scopes_of
from .variables import (all_dtypes, all_type_vars, all_vars, bound_type_vars, bound_vars, expr_children, exprs, free_type_vars, free_vars,
                        pattern_vars, post_order_visit)
from .well_formed import ill_formed_reasons, well_formed
