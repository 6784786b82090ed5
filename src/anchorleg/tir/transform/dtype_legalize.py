"""``BF16ComputeLegalize`` / ``FP8ComputeLegalize``: arithmetic on narrow floats is done in float32.

Values are widened where they are loaded and rounded where they are stored or explicitly cast; memory keeps its dtype.
"""
from __future__ import annotations

from typing import Any, Callable

from ...ir.expr import FloatImm, PrimExpr
from .. import build
from .. import expr as tir
from .. import stmt as ts
from ..buffer import BufferLoad
from ..dtypes import info, with_lanes
from ..function import PrimFunc
from ..functor import StmtMutator, kids, rebuild
from .common import func_pass


class _Legalize(StmtMutator):
    def __init__(self, kind: str, promote: str) -> None:
        super().__init__()
        self.kind, self.promote = kind, promote
        self.lets: dict[int, tir.Var] = {}

    def _narrow(self, dtype: str) -> bool:
        return info(dtype).kind == self.kind

    def _wide(self, dtype: str) -> str:
        return with_lanes(self.promote, info(dtype).lanes)

    def mutate_Var(self, v: tir.Var) -> PrimExpr:
        v = self.lets.get(id(v), v)
        return tir.Cast(self.promote, v) if self._narrow(v.dtype) else v

    def mutate_FloatImm(self, e: FloatImm) -> PrimExpr:
        from ..dtypes import round_float

        return FloatImm(self.promote, round_float(e.value, e.dtype)) if self._narrow(e.dtype) else e

    def mutate_BufferLoad(self, e: BufferLoad) -> PrimExpr:
        return tir.Cast(self._wide(e.dtype), e) if self._narrow(e.dtype) else e

    def _rebuilt(self, e: PrimExpr, new: list[PrimExpr]) -> PrimExpr:
        if isinstance(e, tir.Cast):
            return self._cast(e, new[0])
        if all(a is b for a, b in zip(new, kids(e))):
            return e
        if isinstance(e, tir.Call):
            if e.op.name == "tir.reinterpret":  # wants the bits of the narrow type
                new = [build.cast(k.dtype, n) if self._narrow(k.dtype) else n for k, n in zip(e.args, new)]
                return tir.Call(e.dtype, e.op, new)
            return tir.Call(self._wide(e.dtype) if self._narrow(e.dtype) else e.dtype, e.op, new)
        return rebuild(e, new)

    def _cast(self, e: tir.Cast, value: PrimExpr) -> PrimExpr:
        if not self._narrow(e.dtype):
            return build.cast(e.dtype, value)
        return tir.Cast(self._wide(e.dtype), build.cast(e.dtype, value))  # rounds, as asked for

    def _stored(self, value: PrimExpr, dtype: str) -> PrimExpr:
        if isinstance(value, tir.Cast) and value.value.dtype == dtype:
            return value.value
        return build.cast(dtype, value)

    def visit_BufferStore(self, s: ts.BufferStore) -> ts.Stmt:
        value = self.expr(s.value)
        if value.dtype != s.value.dtype:
            value = self._stored(value, s.value.dtype)
        return s.replace(value=value, indices=tuple(self.expr(i) for i in s.indices))

    def visit_LetStmt(self, s: ts.LetStmt) -> Any:
        value = self.expr(s.value)
        var = s.var
        if value.dtype != var.dtype:
            var = self.lets[id(s.var)] = tir.Var(s.var.name, value.dtype)
        return s.replace(var=var, value=value, body=(yield s.body))


def _legalizer(kind: str) -> Callable[..., PrimFunc]:
    def legalize(func: PrimFunc, promote_dtype_str: str = "float32") -> PrimFunc:
        return _Legalize(kind, promote_dtype_str).func(func)

    legalize.__doc__ = f"The function with {'bfloat16' if kind == 'bfloat' else 'float8'} arithmetic done in ``promote_dtype_str``."
    return legalize


bf16_compute_legalize = _legalizer("bfloat")
fp8_compute_legalize = _legalizer("fp8")
BF16ComputeLegalize = func_pass("BF16ComputeLegalize", bf16_compute_legalize)
FP8ComputeLegalize = func_pass("FP8ComputeLegalize", fp8_compute_legalize)
