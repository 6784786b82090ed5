"""The functions of the script language that are expressions, by table.

Upstream's texts name the result's dtype in either of two ways, ``T.call_extern("int32", "f", x)`` and
``T.call_extern("f", x, dtype="int32")``; functions whose result follows from their arguments take ``dtype=`` and ignore it.
"""
from __future__ import annotations

import functools
from typing import Any, Callable

from ..ir.expr import PrimExpr
from ..ir.op import Op
from ..support.errors import ArgumentError
from ..tir import expr as tir
from ..tir import op
from ..tir.buffer import Buffer, BufferLoad
from ..tir.dtypes import info as dtype_info
from .forms import dtype_text

Function = Callable[..., Any]

# dtype first (or as a keyword), then the operands
_DTYPE_FIRST = ("call_extern call_pure_extern call_llvm_intrin call_llvm_pure_intrin vectorlow vectorhigh vectorcombine reinterpret "
                "call_intrin").split()
# the dtype follows from the operands
_PLAIN = ("abs acos acosh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil ceildiv clz copysign cos cosh "
          "erf exp exp2 exp10 floor floordiv floormod fma fmod hypot if_then_else indexdiv indexmod infinity isfinite isinf isnan isnullptr "
          "ldexp likely log log2 log10 log1p max_value min_value nearbyint nextafter popcount pow power round rsqrt shift_left shift_right sigmoid sin "
          "sinh sqrt tan tanh trunc truncdiv truncmod call_packed call_cpacked call_packed_lowered call_cpacked_lowered "
          "tvm_check_return tvm_tuple tvm_stack_alloca tvm_stack_make_shape tvm_stack_make_array tvm_storage_sync tvm_thread_allreduce tvm_thread_invariant "
          "tvm_throw_last_error vscale tvm_struct_set q_multiply_shift q_multiply_shift_per_axis lookup_param undef assume address_of dp4a "
          "start_profile_intrinsic end_profile_intrinsic TVMBackendAllocWorkspace TVMBackendFreeWorkspace ret "
          "logical_and logical_or logical_not all any").split()
_RENAMED = {"tvm_call_packed": "call_packed", "tvm_call_cpacked": "call_cpacked", "tvm_call_packed_lowered": "call_packed_lowered",
            "tvm_call_cpacked_lowered": "call_cpacked_lowered", "FloorDiv": "floordiv", "FloorMod": "floormod", "And": "logical_and",
            "Or": "logical_or", "Not": "logical_not"}


def _plain(fn: Function) -> Function:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("dtype", None)
        return fn(*map(_value, args), **kwargs)

    return call


def _dtype_first(fn: Function) -> Function:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.pop("dtype", None)
        if dtype is None:
            dtype, args = args[0], args[1:]
        return fn(dtype_text(dtype), *map(_value, args), **kwargs)

    return call


def _value(arg: Any) -> Any:
    return arg.var if isinstance(arg, tir.IterVar) else arg


def _two(fn: Function) -> Function:
    """A function of two operands, either of which may be a number."""
    @functools.wraps(fn)
    def call(a: Any, b: Any, dtype: Any = None) -> Any:
        return fn(*op.match_types(a, b)) if isinstance(a, (PrimExpr, tir.IterVar)) or isinstance(b, (PrimExpr, tir.IterVar)) else fn(a, b)

    return call


def tvm_struct_get(arr: Any, index: Any, field: int, dtype: Any) -> PrimExpr:
    """A field of the ``index``-th structure behind ``arr``."""
    return op.tvm_struct_get(arr, index, field, dtype_text(dtype))


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: int, dtype: Any = None) -> PrimExpr:
    """A pointer into ``data`` at ``offset`` elements that touches ``extent`` elements; mask 1 reads, 2 writes."""
    return op.tvm_access_ptr(type_annotation(ptype) if isinstance(ptype, str) else ptype, data, offset, extent, int(rw_mask))


def type_annotation(dtype: Any) -> PrimExpr:
    """A value that carries only a dtype."""
    return op.type_annotation(dtype_text(dtype))


def Cast(dtype: Any, value: Any) -> PrimExpr:
    """``value`` converted to ``dtype``."""
    return op.cast(_value(value), dtype_text(dtype)) if isinstance(_value(value), PrimExpr) else op.const(value, dtype_text(dtype))


def cast(value: Any, dtype: Any) -> PrimExpr:
    """``value`` converted to ``dtype``."""
    return Cast(dtype, value)


def Select(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """``true_value`` where ``condition`` holds, else ``false_value``; both are evaluated."""
    return op.select(condition, true_value, false_value)


def Ramp(base: Any, stride: Any, lanes: Any) -> PrimExpr:
    """The vector (base, base + stride, …)."""
    if not isinstance(base, PrimExpr):
        base = op.convert(base) if not isinstance(stride, PrimExpr) else op.const(base, stride.dtype)
    return tir.Ramp(base, stride, lanes)


def Broadcast(value: Any, lanes: Any) -> PrimExpr:
    """A vector of copies of ``value``."""
    return tir.Broadcast(op.convert(_value(value)), lanes)


def Shuffle(vectors: Any, indices: Any) -> PrimExpr:
    """Lanes picked from the concatenation of vectors."""
    return tir.Shuffle(vectors, [int(i) for i in indices])


def Let(expr: Any, where: Any) -> PrimExpr:
    """``expr`` with variables bound: ``T.Let(x + 1, where={x: y})``."""
    if len(where) != 1:
        raise ArgumentError(f"T.Let binds one variable, got {len(where)}")
    (var, value), = where.items()
    return tir.Let(var, op.const(value, var.dtype) if not isinstance(value, PrimExpr) else value, op.convert(expr))


def Div(a: Any, b: Any) -> PrimExpr:
    """a / b; for integers the quotient is cut towards zero."""
    return op.div(a, b)


def call(dtype: Any, name: Any, *args: Any) -> PrimExpr:
    """A call of an operator by its full name, or of a global function; the operands may come as one list."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
    callee = Op.get(name) if isinstance(name, str) else name
    return tir.Call(dtype_text(dtype), callee, [op.convert(_value(a)) for a in args])


def BufferLoadOf(buffer: Buffer, indices: Any) -> BufferLoad:
    """The element of a buffer."""
    return BufferLoad(buffer, [op.convert(_value(i)) for i in indices])


def comm_reducer(combiner: Callable[..., Any], identity: Any) -> tir.CommReducer:
    """A reducer: ``combiner(*lhs, *rhs)`` gives how two values (or tuples of them) combine, ``identity`` the neutral ones."""
    start = [op.convert(e) for e in (identity if isinstance(identity, (list, tuple)) else [identity])]
    lhs, rhs = ([tir.Var(f"{side}{i}", e.dtype) for i, e in enumerate(start)] for side in ("x", "y"))
    result = combiner(*lhs, *rhs)
    return tir.CommReducer(lhs, rhs, result if isinstance(result, (list, tuple)) else [result], start)


def _registered(name: str, dtype: str) -> Function:
    """An intrinsic without a rule of its own: its dtype first, as a keyword, or ``dtype`` where none is named."""
    op_ = Op.get(f"tir.{name}")

    def made(*args: Any, **kwargs: Any) -> PrimExpr:
        given = kwargs.pop("dtype", None)
        if given is None and args and isinstance(args[0], str) and _is_dtype(args[0]):
            given, args = args[0], args[1:]
        return tir.Call(dtype_text(given or dtype), op_, [op._argument(_value(a)) for a in args])

    made.__name__ = made.__qualname__ = name
    return made


def _is_dtype(text: str) -> bool:
    try:
        return dtype_info(text).bits >= 0
    except ArgumentError:
        return False


def _comparison(fn: Function) -> Function:
    return _two(fn)


def reduced(kind: str) -> Function:
    """``T.max`` and ``T.min`` of two values; Python's own for numbers."""
    maker = {"max": op.maximum, "min": op.minimum}[kind]
    return _two(maker)


# intrinsics of devices: name → the dtype of a call that names none
_DEVICE = {**dict.fromkeys("tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_store_matrix_sync".split(), "handle"),
           **dict.fromkeys("tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down tvm_warp_activemask".split(), "int32"),
           **dict.fromkeys(("ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_cp_async_bulk ptx_commit_group ptx_wait_group ptx_cp_async_barrier "
                            "ptx_init_barrier_thread_count ptx_arrive_barrier ptx_arrive_barrier_expect_tx ptx_wait_barrier create_barriers "
                            "mma_store mma_fill").split(), "void")}

INTRINSICS: dict[str, Function] = {
    **{name: _registered(name, dtype) for name, dtype in _DEVICE.items()},
    **{name: _plain(getattr(op, name)) for name in _PLAIN}, **{name: _dtype_first(getattr(op, name)) for name in _DTYPE_FIRST},
    **{name: _plain(getattr(op, ours)) for name, ours in _RENAMED.items()},
    "tvm_struct_get": tvm_struct_get, "tvm_access_ptr": tvm_access_ptr, "type_annotation": type_annotation, "Cast": Cast, "cast": cast,
    "Select": Select, "Ramp": Ramp, "Broadcast": Broadcast, "Shuffle": Shuffle, "Let": Let, "Div": Div, "div": Div, "call": call,
    "max": reduced("max"), "min": reduced("min"), "Max": reduced("max"), "Min": reduced("min"), "comm_reducer": comm_reducer,
    "BufferLoad": BufferLoadOf, "Add": _two(op.add), "Sub": _two(op.subtract), "Mul": _two(op.multiply), "Mod": _two(op.truncmod),
    "EQ": _comparison(op.equal), "NE": _comparison(op.not_equal), "LT": _comparison(op.less), "LE": _comparison(op.less_equal),
    "GT": _comparison(op.greater), "GE": _comparison(op.greater_equal), "fabs": _plain(op.abs),
    "StringImm": tir.StringImm, "Call": call, "ramp": Ramp, "broadcast": Broadcast,
}
