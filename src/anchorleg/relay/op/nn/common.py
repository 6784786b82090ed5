"""What the type relations and numpy rules of this family share."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ....ir.expr import Any as AnyDim
from ....ir.type import IncompleteType, TensorType, Type
from ....runtime.dtype import numpy_dtype as np_dtype
from ....support.errors import TypeMismatchError
from ..type_relations import is_float


def tensor(t: Type, what: str) -> TensorType | None:
    """``t`` as a tensor type; None while it is not known; an error when it is something else."""
    if isinstance(t, TensorType):
        return t
    if isinstance(t, IncompleteType):
        return None
    raise TypeMismatchError(f"{what}: expected a tensor, got {t}")


def shown(dims: Sequence[Any]) -> str:
    """A shape as text."""
    return "(" + ", ".join("?" if isinstance(d, AnyDim) else str(d) for d in dims) + ")"


def check_axis(op: str, axis: int, rank: int, name: str = "axis") -> int:
    """``axis`` counted from 0; TypeMismatchError when it is out of range."""
    if not -rank <= axis < rank:
        raise TypeMismatchError(f"{op}: {name} {axis} is out of range for a tensor of rank {rank}"
                                + (f"; expected {-rank} … {rank - 1}" if rank else ""))
    return axis % rank


def check_rank(op: str, t: TensorType, rank: int, what: str = "data") -> None:
    """TypeMismatchError unless ``t`` has that rank."""
    if len(t.dims) != rank:
        raise TypeMismatchError(f"{op}: expected {what} of rank {rank}, got shape {shown(t.dims)}")


def known(*dims: Any) -> bool:
    """Whether every dimension is a plain int."""
    return all(isinstance(d, int) for d in dims)


def expect(ctx: Any, op: str, what: str, got: Type, dims: Sequence[Any], dtype: str) -> None:
    """Makes argument type ``got`` the tensor of ``dims`` and ``dtype``; TypeMismatchError says what differs."""
    if isinstance(got, TensorType):
        fits = len(got.dims) == len(dims) and all(a == b for a, b in zip(got.dims, dims) if known(a, b))
        if not fits:
            raise TypeMismatchError(f"{op}: expected {what} of shape {shown(dims)}, got {shown(got.dims)}")
        if got.dtype != dtype:
            raise TypeMismatchError(f"{op}: expected {what} of dtype {dtype}, got {got.dtype}")
    ctx.unify(got, TensorType(dims, dtype))


def add(a: Any, b: Any) -> Any:
    """a + b of dimensions; unknown when one is."""
    return AnyDim() if isinstance(a, AnyDim) or isinstance(b, AnyDim) else a + b


def mul(a: Any, b: Any) -> Any:
    """a * b of dimensions; unknown when one is."""
    return AnyDim() if isinstance(a, AnyDim) or isinstance(b, AnyDim) else a * b


def div(a: Any, b: Any) -> Any:
    """a // b of dimensions; unknown when one is."""
    return AnyDim() if isinstance(a, AnyDim) or isinstance(b, AnyDim) else a // b


def wide(dtype: str) -> np.dtype:
    """The numpy dtype to compute in, so that narrow floats lose nothing on the way."""
    return np.dtype("float32") if is_float(dtype) and np_dtype(dtype).itemsize < 4 else np_dtype(dtype)


def identity_relation(args: tuple[Type, ...], attrs: Any, ctx: Any) -> Type | None:
    """The result has the first argument's type."""
    return tensor(args[0], "data")
