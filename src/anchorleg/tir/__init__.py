"""The loop language: expressions, buffers, statements, functions, and what to do with them.

``analysis``, ``transform``, ``stmt_functor``, ``ir_builder`` and the interpreter are loaded when first used.
"""
import importlib
from typing import Any as _Any_

from ..ir.expr import PrimExpr
from .block import Block, BlockRealize, BufferRegion, MatchBufferRegion
from .buffer import Buffer, BufferLoad, ProducerLoad, decl_buffer
from .expr import (EQ, GE, GT, LE, LT, NE, Add, And, Any, BinaryExpr, Broadcast, Call, Cast, CmpExpr, CommReducer, Div, FloatImm, FloorDiv,
                   FloorMod, IntImm, IterVar, Let, LogicalExpr, Max, Min, Mod, Mul, Not, Or, Ramp, Range, Reduce, Select, Shuffle,
                   SizeVar, StringImm, Sub, Var)
from .function import PrimFunc
from .intrin import CallEffectKind
from .op import (TVMBackendAllocWorkspace, TVMBackendFreeWorkspace, abs, acos, acosh, add, address_of, all, any, asin, asinh, assume, atan,
                 atan2, atanh, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, call_cpacked, call_cpacked_lowered, call_extern,
                 call_intrin, call_llvm_intrin, call_llvm_pure_intrin, call_packed, call_packed_lowered, call_pure_extern, cast, ceil,
                 ceildiv, checked_const as const, clz, convert, copysign, cos, cosh, div, dp4a, end_profile_intrinsic, erf, exp, exp2, exp10, floor,
                 floordiv, floormod, fma, fmod, hypot, if_then_else, indexdiv, indexmod, infinity, isfinite, isinf, isnan, isnullptr,
                 ldexp, likely, log, log1p, log2, log10, logical_and, logical_not, logical_or, lookup_param, max_value, min_value, multiply,
                 nan, nearbyint, negative, nextafter, popcount, pow, power, q_multiply_shift, q_multiply_shift_per_axis, reinterpret, ret,
                 round, rsqrt, select, shift_left, shift_right, sigmoid, sin, sinh, sqrt, start_profile_intrinsic, subtract, tan, tanh,
                 trunc, truncdiv, truncmod, tvm_access_ptr, tvm_check_return, tvm_stack_alloca, tvm_stack_make_array,
                 tvm_stack_make_shape, tvm_storage_sync, tvm_struct_get, tvm_struct_set, tvm_thread_allreduce, tvm_throw_last_error,
                 tvm_tuple, type_annotation, undef, vectorcombine, vectorhigh, vectorlow, vscale)
from .reducer import comm_reducer, max, min, sum
from .stmt import (Allocate, AllocateConst, AssertStmt, AttrStmt, BufferRealize, BufferStore, DeclBuffer, Evaluate, For, ForKind,
                   IfThenElse, LetStmt, SeqStmt, Stmt, While, seq)
from . import printer as _printer  # registers how nodes are shown

_LAZY = ("analysis", "transform", "stmt_functor", "ir_builder", "interpreter", "printer", "verify", "functor", "data_layout")
_LAZY_NAMES = {"run_primfunc": "interpreter", "Layout": "data_layout", "BijectiveLayout": "data_layout", "layout": "data_layout",
               "bijective_layout": "data_layout", "stmt_seq": "stmt_functor", "stmt_list": "stmt_functor"}


def __getattr__(name: str) -> _Any_:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
