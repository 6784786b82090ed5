"""The options that ``PassContext(config=...)`` knows before any pass is loaded.

Passes may declare further ones.  Options of code generators for other devices are accepted, so that programs that set them run.
"""
from __future__ import annotations

_BOOL = {
    "ir.enable_si_builder": "passes keep source spans",
    "relay.FuseOps.link_params": "keep constants inside fused functions",
    "relay.ToMixedPrecision.keep_orig_output_dtype": "results keep their data type",
    "relay.backend.use_auto_scheduler": "choose implementations for the auto-scheduler: by priority alone",
    "relay.backend.use_meta_schedule": "choose implementations for the meta-schedule: by priority alone",
    "relay.frontend.fill_span": "importers note where expressions come from",
    "relay.remove_standalone_reshapes.enable": "let lowered reshapes take the memory of what they reshape",
    "te.keep_schedule_record": "schedules remember their steps",
    "testing.immutable_module": "modules must not be edited",
    "tir.debug_keep_trivial_loop": "keep loops of one step",
    "tir.detect_global_barrier": "look for barriers across blocks of threads",
    "tir.disable_assert": "leave assertions out",
    "tir.disable_cse_tir": "leave common subexpressions alone",
    "tir.disable_storage_rewrite": "give every buffer memory of its own",
    "tir.disable_vectorize": "leave VECTORIZED loops serial",
    "tir.enable_buffer_level_predication": "load and store under masks",
    "tir.enable_debug": "keep debugging information",
    "tir.enable_equiv_terms_in_cse_tir": "take equal sums in other orders for common",
    "tir.experimental_dma_bypass_cache": "",
    "tir.instr_siblings": "",
    "tir.instrument_bound_checkers": "check the bounds of accesses at run time",
    "tir.instrument_lwp": "count cycles of loops",
    "tir.is_entry_func": "lowered functions are entry points",
    "tir.lwp_disable_func_prof": "",
    "tir.merge_static_smem": "",
    "tir.noalias": "arguments do not overlap",
    "tir.ptx_ldg32": "",
    "tir.reset_start_id": "",
    "tir.simple_mode": "lower without partitioning, for readable output",
    "tir.use_async_copy": "",
    "tir.usmp.enable": "plan the workspace over declared pools (planning itself is always done)",
    "tir.usmp.use_workspace_io": "put inputs and outputs into the workspace pools too",
}
_INT = {
    "relay.FuseOps.max_depth": "the most operators in one fused function (default 256)",
    "relay.backend.use_meta_schedule_dispatch": "",
    "relay.collage.byoc_max_depth": "",
    "relay.collage.tvm_max_depth": "",
    "relay.fallback_device_type": "the device type of what no target is given for",
    "tir.contrib.copy_compute_reordering_max_copy_movements": "",
    "tir.lwp_max_depth": "",
    "tir.lwp_min_height": "",
    "tir.vtcm_capacity": "",
}
_STR = {
    "cuda.kernels_output_dir": "",
    "relay.backend.tir_converter": "how primitive functions become loop programs",
    "tir.usmp.algorithm": "greedy_by_size, greedy_by_conflicts or hill_climb (default: the best of all)",
    "tir.usmp.custom_algorithm": "a registered function that plans the workspace",
}
_DICT = {
    "tir.HoistExpression": "hoisted_conditionals, hoisted_let_bindings",
    "tir.HoistIfThenElse": "support_block_scope_hoisting",
    "tir.InjectDoubleBuffer": "split_loop",
    "tir.LoopPartition": "partition_const_loop, no_unroll_loop_with_extent_one, unroll_loop_with_partition_hint_no_interval",
    "tir.RemoveNoOp": "use_dataflow_analysis, max_simplification_steps",
    "tir.Simplify": "transitively_prove_inequalities, propagate_knowns_to_prove_conditional, apply_constraints_to_boolean_branches",
    "tir.UnrollLoop": "auto_max_step, auto_max_depth, auto_max_extent, explicit_unroll",
}

OPTIONS: dict[str, tuple[type, str]] = {
    key: (kind, doc)
    for kind, table in ((bool, _BOOL), (int, _INT), (str, _STR), (dict, _DICT))
    for key, doc in table.items()
} | {"tir.add_lower_pass": (list, "pairs (phase 0 to 3, pass or function) to run during lowering as well")}
