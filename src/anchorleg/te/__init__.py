"""Tensor expressions: what is computed (operations on tensors) and how it is run (schedules)."""
from ..tir.op import (abs, acos, acosh, add, all, any, asin, asinh, atan, atanh, ceil, cos, cosh, div, erf, exp, floor, floordiv, floormod,
                      fmod, if_then_else, indexdiv, indexmod, isfinite, isinf, isnan, log, log2, log10, max_value, min_value, multiply,
                      nearbyint, popcount, power, round, rsqrt, sigmoid, sin, sinh, sqrt, subtract, tan, tanh, trunc, truncdiv, truncmod)
from ..tir.op import const as _const
from ..tir.reducer import comm_reducer, max, min, sum
from . import tag
from .operation import (ComputeOp, ExternOp, Operation, PlaceholderOp, compute, const, extern, placeholder, reduce_axis, size_var, thread_axis,
                        var)
from .specialized import SpecializedCondition
from .schedule import AttachType, Schedule, Stage, create_schedule
from .tag import tag_scope
from .tensor import Tensor, TensorSlice
from .tensor_intrin import TensorIntrin, decl_tensor_intrin

prod = comm_reducer(lambda x, y: x * y, lambda t: _const(1, t), "prod")


def create_prim_func(*args, **kwargs):  # type: ignore[no-untyped-def]
    """See :func:`anchorleg.te.lower.prim_func.create_prim_func`."""
    from .lower.prim_func import create_prim_func as build

    return build(*args, **kwargs)
