"""The types of a model's inputs: from the model, overridden by the caller; symbolic sizes become ``relay.Any``."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ....ir.expr import Any as AnyDim, IntImm, PrimExpr
from ....ir.type import TensorType
from ....runtime.dtype import dtype_name
from ....support.errors import ArgumentError, UnsupportedOpError
from .tensors import relay_dtype


class InputTypes:
    """Gives each input its type; sizes under one symbolic name are one object."""

    def __init__(self, names: Sequence[str], shape: Any, dtype: Any) -> None:
        self.shapes = _by_name(names, shape)
        self.dtypes = dict(dtype) if isinstance(dtype, Mapping) else {}
        self.default = "float32" if isinstance(dtype, Mapping) or dtype is None else dtype_name(dtype)
        self.symbols: dict[str, AnyDim] = {}
        for given in (self.shapes, self.dtypes):
            unknown = [n for n in given if n not in names]
            if unknown:
                raise ArgumentError(f"the model has no input named {', '.join(map(repr, unknown))}; its inputs are: "
                                    f"{', '.join(map(repr, names)) or 'none'}")

    def type_of(self, info: Any) -> TensorType:
        """The type of an input described by a ValueInfoProto."""
        kind = info.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            raise UnsupportedOpError(f"input {info.name!r} is a {kind.removesuffix('_type')}; only tensors can be inputs of a compiled "
                                     "model")
        return TensorType(self._shape(info), self._dtype(info))

    def _dtype(self, info: Any) -> str:
        if info.name in self.dtypes:
            return dtype_name(self.dtypes[info.name])
        code = info.type.tensor_type.elem_type
        return relay_dtype(code, f"input {info.name!r}") if code else self.default

    def _shape(self, info: Any) -> list[Any]:
        if info.name in self.shapes:
            return [_given_dim(d, info.name) for d in self.shapes[info.name]]
        if not info.type.tensor_type.HasField("shape"):
            raise ArgumentError(f"the model does not say how many dimensions its input {info.name!r} has: give "
                                f"shape={{{info.name!r}: (…)}}")
        return [self._dim(d) for d in info.type.tensor_type.shape.dim]

    def _dim(self, dim: Any) -> Any:
        kind = dim.WhichOneof("value")
        if kind == "dim_value" and dim.dim_value >= 0:
            return dim.dim_value
        if kind == "dim_param" and dim.dim_param not in ("", "?"):
            return self.symbols.setdefault(dim.dim_param, AnyDim())
        return AnyDim()


def _by_name(names: Sequence[str], shape: Any) -> dict[str, Any]:
    if shape is None:
        return {}
    if isinstance(shape, Mapping):
        return dict(shape)
    shapes = list(shape)
    if shapes and not isinstance(shapes[0], (list, tuple)):
        shapes = [shapes]
    if len(shapes) > len(names):
        raise ArgumentError(f"{len(shapes)} shapes were given, but the model has {len(names)} inputs: {', '.join(map(repr, names))}")
    return dict(zip(names, shapes))


def _given_dim(dim: Any, name: str) -> Any:
    if isinstance(dim, PrimExpr) and not isinstance(dim, IntImm):
        return dim
    if dim is None or isinstance(dim, str):
        return AnyDim()
    try:
        return int(dim) if int(dim) >= 0 else AnyDim()
    except (TypeError, ValueError):
        raise ArgumentError(f"the size {dim!r} in the shape of input {name!r} must be a number, or None for one not known") from None
