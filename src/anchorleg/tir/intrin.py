"""The table of intrinsics: each is an Op named ``tir.<name>`` with its argument count, effect and vector form.

``TCallEffectKind`` says what a call may do (see :class:`CallEffectKind`); ``TVectorizable`` that a call on vectors means the call on
each lane.
"""
from __future__ import annotations

from enum import IntEnum

from ..ir.expr import BaseExpr
from ..ir.op import Op, register_op


class CallEffectKind(IntEnum):
    """What evaluating a call does beyond giving its value."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = UpdateState
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6


_UNARY_FLOAT = ("exp exp2 exp10 erf tanh sigmoid log log2 log10 log1p tan cos cosh acos acosh sin sinh asin asinh atan atanh "
                "sqrt rsqrt floor ceil trunc fabs round nearbyint")
_K = CallEffectKind
_TABLE: tuple[tuple[str, int, CallEffectKind, bool], ...] = (
    (_UNARY_FLOAT + " isnan isfinite isinf popcount clz bitwise_not reinterpret", 1, _K.Pure, True),
    ("atan2 hypot nextafter copysign ldexp pow fmod bitwise_and bitwise_or bitwise_xor shift_left shift_right", 2, _K.Pure, True),
    ("fma", 3, _K.Pure, True),
    ("q_multiply_shift", 4, _K.Pure, True),
    ("q_multiply_shift_per_axis", 7, _K.Pure, True),
    ("if_then_else", 3, _K.Pure, False),
    ("likely", 1, _K.ExprAnnotation, True),
    ("isnullptr", 1, _K.Pure, False),
    ("large_uint_imm", 2, _K.Pure, False),
    ("address_of", 1, _K.Pure, False),
    ("vectorlow vectorhigh", 1, _K.Pure, False),
    ("vectorcombine", 2, _K.Pure, False),
    ("dp4a", 3, _K.Pure, False),
    ("pack4x8", 4, _K.Pure, True),
    ("dot4_u8s8 dot4_s8s8", 3, _K.Pure, True),
    ("ret", 1, _K.ControlJump, False),
    ("call_pure_extern call_llvm_pure_intrin", -1, _K.Pure, True),
    ("call_extern call_llvm_intrin", -1, _K.Opaque, True),
    ("tvm_call_packed tvm_call_cpacked tvm_call_packed_lowered tvm_call_cpacked_lowered tvm_call_trace_packed", -1, _K.Opaque, False),
    ("tvm_stack_alloca", 2, _K.Opaque, False),
    ("tvm_stack_make_shape tvm_stack_make_array tvm_thread_allreduce tvm_storage_sync prefetch", -1, _K.Opaque, False),
    ("tvm_struct_get tvm_context_id", -1, _K.ReadState, False),
    ("tvm_struct_set", 4, _K.UpdateState, False),
    ("tvm_access_ptr", 5, _K.SpecialCallArg, False),
    ("tvm_static_handle", 0, _K.SpecialCallArg, False),
    ("type_annotation", 0, _K.EmbedInfo, False),
    ("tvm_tuple", -1, _K.EmbedInfo, False),
    ("tvm_check_return tvm_thread_invariant", -1, _K.Pure, False),
    ("tvm_throw_last_error", 0, _K.Opaque, False),
    ("lookup_param", 1, _K.ReadState, False),
    ("tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down", 5, _K.Opaque, False),
    ("tvm_warp_activemask", 0, _K.Opaque, False),
    ("tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_store_matrix_sync", -1, _K.Opaque, False),
    ("ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_cp_async_bulk ptx_commit_group ptx_wait_group ptx_cp_async_barrier", -1, _K.Opaque, False),
    ("ptx_init_barrier_thread_count ptx_arrive_barrier ptx_arrive_barrier_expect_tx ptx_wait_barrier create_barriers", -1, _K.Opaque, False),
    ("mma_store mma_fill", -1, _K.Opaque, False),
    ("TVMBackendAllocWorkspace", 5, _K.Opaque, False),
    ("TVMBackendFreeWorkspace", 3, _K.Opaque, False),
    ("start_profile_intrinsic end_profile_intrinsic", 1, _K.Opaque, False),
    ("assume", 1, _K.EmbedInfo, False),
    ("vscale", 0, _K.Pure, False),
    ("undef", 0, _K.ReadState, False),
    ("vector_reduce_add vector_reduce_max vector_reduce_min", 1, _K.Pure, False),
)


def _register() -> None:
    for names, count, effect, vectorizable in _TABLE:
        for name in names.split():
            op = register_op(f"tir.{name}")
            op.set_num_inputs(count)
            op.set_attr("TCallEffectKind", effect)
            op.set_attr("TVectorizable", vectorizable)


_register()

IF_THEN_ELSE = Op.get("tir.if_then_else")
LIKELY = Op.get("tir.likely")
_PURE_KINDS = (CallEffectKind.ExprAnnotation, CallEffectKind.Pure, CallEffectKind.EmbedInfo, CallEffectKind.SpecialCallArg)


def effect_of(op: BaseExpr) -> CallEffectKind:
    """The effect of calling ``op`` (of a global function: anything)."""
    if not isinstance(op, Op):
        return CallEffectKind.Opaque
    return op.get_attr("TCallEffectKind", CallEffectKind.Opaque)


def is_pure_op(op: BaseExpr) -> bool:
    """Whether a call of ``op`` neither reads nor writes anything but its arguments."""
    return effect_of(op) in _PURE_KINDS
