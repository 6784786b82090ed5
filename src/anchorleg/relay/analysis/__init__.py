"""Analyses of the graph language: questions about programs that change nothing."""
from .variables import (all_dtypes, all_type_vars, all_vars, bound_type_vars, bound_vars, expr_children, exprs, free_type_vars, free_vars,
                        pattern_vars, post_order_visit)
from .well_formed import ill_formed_reasons, well_formed
