"""Types of parameters as an executable keeps them, so that the machine can refuse arguments that are something else."""
from __future__ import annotations

from typing import Any

from ...ir.module import IRModule
from ...ir.type import FuncType, GlobalTypeVar, RefType, TensorType, TupleType, Type, TypeCall
from ..transform.bind import bind_type_vars

_LONGEST = 1000  # characters of a data type: one whose fields hold ever larger instances of itself is not written down to the end
_MOST = 1000  # data types: as above, where there are several larger ones each time


class TypeSpecs:
    """Writes types down; ``data`` are the data types met: for each the tags of its constructors and the fields' types."""

    def __init__(self, mod: IRModule) -> None:
        self._definitions = {v.name_hint: d for v, d in mod.type_definitions.items()}
        self.data: dict[str, list[list[Any]]] = {}
        self._pending: list[tuple[str, Any, dict[Any, Any]]] = []

    def spec(self, ty: Type | None) -> Any:
        """``[dtype, dims]``, ``{"tuple": …}``, ``{"function": …}``, ``{"data": …}``, ``{"ref": 1}``; None where nothing is known."""
        if isinstance(ty, TensorType):
            return [ty.dtype, [d if isinstance(d, int) else -1 for d in ty.dims]]
        if isinstance(ty, TupleType):
            return {"tuple": [self.spec(f) for f in ty.fields]}
        if isinstance(ty, FuncType):
            return {"function": len(ty.arg_types)}
        if isinstance(ty, RefType):
            return {"ref": 1}
        return self._data(ty) if isinstance(ty, (TypeCall, GlobalTypeVar)) else None

    def _data(self, ty: TypeCall | GlobalTypeVar) -> Any:
        head, args = (ty.func, ty.args) if isinstance(ty, TypeCall) else (ty, ())
        definition = self._definitions.get(head.name_hint) if isinstance(head, GlobalTypeVar) else None
        if definition is None or len(args) != len(definition.type_vars):
            return None
        key = head.name_hint + (f"[{', '.join(map(str, args))}]" if args else "")  # type: ignore[attr-defined]
        if key not in self.data:
            if len(key) > _LONGEST or len(self.data) >= _MOST:
                return None
            self.data[key] = []
            self._pending.append((key, definition, dict(zip(definition.type_vars, args))))
            if len(self._pending) == 1:  # nobody else is at it
                self._fill()
        return {"data": key}

    def _fill(self) -> None:
        """Writes down the constructors of data types met so far, and of those met on the way: a loop, since types may hold ever larger ones."""
        for key, definition, binds in self._pending:
            self.data[key] += [[c.tag, [self.spec(bind_type_vars(t, binds) if binds else t) for t in c.inputs]] for c in definition.constructors]
        self._pending.clear()


__all__ = ["TypeSpecs"]
