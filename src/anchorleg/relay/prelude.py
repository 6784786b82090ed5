"""``Prelude``: a module with the standard data types and functions, and names for what is in it."""
from __future__ import annotations

from typing import Any, Sequence

from ..ir.expr import GlobalVar
from ..ir.module import IRModule
from ..ir.type import GlobalTypeVar, TypeCall
from ..support.errors import ArgumentError
from .adt import Constructor
from .function import Function
from .library import import_from_std
from .tensor_array import DTYPES, StaticTensorArrayOps, TensorArrayOps, shape_of_type_name, static_name

_FUNCTIONS = ("id", "compose", "flip", "hd", "tl", "nth", "update", "map", "foldl", "foldr", "foldr1", "concat", "filter", "zip", "rev",
              "map_accuml", "map_accumr", "unfoldl", "unfoldr", "sum", "length", "tmap", "size", "iterate")


class Prelude:
    """Adds lists, options, trees, their functions and the dynamic tensor arrays to a module (in place, or to a new one).

    Each function of the lists is an attribute: ``p.map(f, p.mod.get_type("List") …)``.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = mod if mod is not None else IRModule()
        self.load_prelude()

    def load_prelude(self) -> None:
        """Adds what is missing to the module."""
        import_from_std(self.mod, "prelude.rly")
        for name in _FUNCTIONS:
            setattr(self, name, self.mod.get_global_var(name))
        for dtype in DTYPES:
            TensorArrayOps(self, dtype).register()

    def get_name(self, canonical: str, dtype: str) -> str:
        """The full name of something of the dynamic tensor arrays."""
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """A function of the dynamic tensor arrays, e.g. ``("tensor_array_read", "int32")``."""
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The type of the dynamic tensor arrays of a dtype (``"tensor_t"``)."""
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """A constructor of the type named ``ty_name``."""
        return self._ctor(ty_name, self.get_name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """A constructor of the dynamic tensor arrays, e.g. ``("tensor2", "float32")``."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None) -> str:
        """The full name of something of the static tensor arrays."""
        return static_name(canonical, dtype, shape, batch_dim)

    def get_global_var_static(self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None) -> GlobalVar:
        """A function of the static tensor arrays of a shape (registered before by ``StaticTensorArrayOps``)."""
        return self.mod.get_global_var(self.get_name_static(canonical, dtype, shape, batch_dim))

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> GlobalTypeVar:
        """The type of the static tensor arrays of a shape."""
        return self.mod.get_global_type_var(self.get_name_static(canonical, dtype, shape))

    def get_ctor_static(self, ty_name: str, name: str, dtype: str, shape: Sequence[Any]) -> Constructor:
        """A constructor of a type of the static tensor arrays."""
        return self._ctor(self.get_name_static(ty_name, dtype, shape), self.get_name_static(name, dtype, shape))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[Any]) -> Constructor:
        """A constructor of the static tensor arrays of a shape."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)

    def _ctor(self, type_name: str, name: str) -> Constructor:
        for constructor in self.mod.get_type(type_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise ArgumentError(f"the type {type_name} has no constructor {name!r}")


def get_tensor_array_shape(expr: Any, dtype: str, prelude: Prelude) -> tuple[Any, ...] | None:
    """The shape of the tensors in a tensor array, when it is of the static kind; None for the dynamic kind."""
    from .analysis import free_vars
    from .transform.infer_type import InferType

    mod = prelude.mod.copy()
    mod["main"] = Function(free_vars(expr), expr)
    kind = InferType()(mod)["main"].body.checked_type
    if not isinstance(kind, TypeCall) or not kind.args or not isinstance(kind.args[0], TypeCall):
        raise ArgumentError(f"expected a tensor array, got an expression of type {kind}")
    return shape_of_type_name(kind.args[0].func.name_hint, dtype)


__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]
