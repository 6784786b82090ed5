"""``IRModule``: the unit that passes map to one another: named functions and data type definitions."""
from __future__ import annotations

import zlib
from typing import Any, Callable, Iterator, Mapping

from ..support.errors import ArgumentError
from .attrs import DictAttrs
from .expr import BaseFunc, GlobalVar
from .node import Node
from .type import GlobalTypeVar


class NodeMap(dict):
    """A dictionary whose ``items()``, ``keys()`` and ``values()`` are lists, as upstream's maps give them."""

    def items(self) -> list[tuple[Any, Any]]:  # type: ignore[override]
        return list(super().items())

    def keys(self) -> list[Any]:  # type: ignore[override]
        return list(super().keys())

    def values(self) -> list[Any]:  # type: ignore[override]
        return list(super().values())


class NodeList(tuple):
    """A tuple that also equals a list of the same nodes, as upstream's arrays do."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other)) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return NodeList(found) if isinstance(index, slice) else found


class IRModule(Node):
    """Functions by global name, algebraic data types, and module attributes.

    The mapping interface (``mod["main"]``, ``mod["f"] = func``) edits in place, as users expect; passes work on
    ``mod.copy()`` and never edit what they were given.
    """

    __slots__ = ("functions", "type_definitions", "attrs", "_names", "_type_names", "_tags")

    def __init__(self, functions: Mapping[Any, BaseFunc] | None = None, type_definitions: Mapping[Any, Any] | None = None,
                 attrs: Any = None) -> None:
        self.functions: dict[GlobalVar, BaseFunc] = NodeMap()
        self.type_definitions: dict[GlobalTypeVar, Any] = NodeMap()
        self._names: dict[str, GlobalVar] = {}
        self._type_names: dict[str, GlobalTypeVar] = {}
        self.attrs, self.span = attrs if attrs is not None else DictAttrs(), None
        for key, data in (type_definitions or {}).items():
            self.add_type_def(key if isinstance(key, GlobalTypeVar) else GlobalTypeVar(key), data)
        for key, func in (functions or {}).items():
            self[key] = func

    def children(self) -> list[Node]:
        return [*self.type_definitions.values(), *self.functions.values()]

    def copy(self) -> IRModule:
        """A module of its own with the same functions and types."""
        new = IRModule(None, None, self.attrs)
        new.functions, new.type_definitions = NodeMap(self.functions), NodeMap(self.type_definitions)
        new._names, new._type_names = dict(self._names), dict(self._type_names)
        return new

    shallow_copy = copy

    def with_functions(self, functions: Mapping[GlobalVar, BaseFunc]) -> IRModule:
        """The module with exactly these functions; the same object if they are those it has."""
        if len(functions) == len(self.functions) and all(self.functions.get(k) is v for k, v in functions.items()):
            return self
        new = self.copy()
        new.functions, new._names = NodeMap(functions), {g.name_hint: g for g in functions}
        return new

    def __getitem__(self, var: str | GlobalVar | GlobalTypeVar) -> Any:
        if isinstance(var, GlobalTypeVar):
            return self.type_definitions[var]
        key = self.get_global_var(var) if isinstance(var, str) else var
        if key not in self.functions:
            raise ArgumentError(f"the module has no function {key.name_hint!r}; it has: {', '.join(self._names) or 'none'}")
        return self.functions[key]

    def __setitem__(self, var: str | GlobalVar | GlobalTypeVar, func: Any) -> None:
        if isinstance(var, GlobalTypeVar) or hasattr(func, "constructors"):
            self._set_type_def(var if isinstance(var, GlobalTypeVar) else func.header, func)
            return
        if isinstance(var, str):
            var = self._names.get(var) or GlobalVar(var)
        old = self._names.get(var.name_hint)
        if old is not None and old is not var:
            self.functions.pop(old, None)
        self._names[var.name_hint] = var
        self.functions[var] = func

    def __delitem__(self, var: str | GlobalVar) -> None:
        key = self.get_global_var(var) if isinstance(var, str) else var
        del self.functions[key]
        self._names.pop(key.name_hint, None)

    def __contains__(self, var: Any) -> bool:
        return var in self._names if isinstance(var, str) else var in self.functions

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """(name, function) pairs in insertion order."""
        return list(self.functions.items())

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """(name, function) pairs, by name."""
        return sorted(self.functions.items(), key=lambda kv: kv[0].name_hint)

    def update(self, other: IRModule | Mapping[GlobalVar, BaseFunc]) -> None:
        """Takes over all functions and types of another module, replacing those of the same name."""
        source = other if isinstance(other, IRModule) else IRModule(other)
        for var, data in source.type_definitions.items():
            if var.name_hint not in self._type_names:
                self.add_type_def(var, data)
        for gvar, func in source.functions.items():
            self[gvar] = func

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Sets one function."""
        self[var] = func

    def _add(self, var: str | GlobalVar, val: Any, update: bool = False) -> None:
        """Adds a function or an expression; ArgumentError when the name is taken, unless ``update``."""
        name = var if isinstance(var, str) else var.name_hint
        if name in self._names and not update:
            raise ArgumentError(f"the module already has a function {name!r}")
        if not isinstance(val, BaseFunc) and not hasattr(val, "constructors"):
            val = _WRAPPERS[-1](val)
        self[var] = val

    def add_type_def(self, var: GlobalTypeVar, data: Any) -> None:
        """Adds one data type definition; ArgumentError if the name is taken."""
        if var.name_hint in self._type_names:
            raise ArgumentError(f"the module already defines the type {var.name_hint!r}")
        self._set_type_def(var, data)

    def _set_type_def(self, var: GlobalTypeVar, data: Any) -> None:
        """Enters a definition and numbers its constructors: unique within the module, and stable."""
        old = self._type_names.get(var.name_hint)
        if old is not None and old is not var:
            del self.type_definitions[old]
        self.type_definitions[var], self._type_names[var.name_hint] = data, var
        base = (zlib.crc32(var.name_hint.encode()) & 0x7FFF) << 16
        for i, constructor in enumerate(getattr(data, "constructors", ())):
            constructor.tag = base | i

    def get_type(self, type_name: str) -> tuple[Any, ...]:
        """The name of a data type, followed by its constructors."""
        var = self.get_global_type_var(type_name)
        return (var, *self.type_definitions[var].constructors)

    def get_constructor(self, tag: int) -> Any:
        """The constructor with that tag; ArgumentError when there is none."""
        for data in self.type_definitions.values():
            for constructor in data.constructors:
                if constructor.tag == tag:
                    return constructor
        raise ArgumentError(f"no constructor of the module has the tag {tag}")

    def get_global_var(self, name: str) -> GlobalVar:
        """The GlobalVar of that name; ArgumentError listing the names when there is none."""
        if name not in self._names:
            raise ArgumentError(f"the module has no function {name!r}; it has: {', '.join(self._names) or 'none'}")
        return self._names[name]

    def get_global_vars(self) -> list[GlobalVar]:
        """All global names."""
        return list(self.functions)

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The GlobalTypeVar of that name."""
        if name not in self._type_names:
            raise ArgumentError(f"the module defines no type {name!r}; it has: {', '.join(self._type_names) or 'none'}")
        return self._type_names[name]

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """All data type names."""
        return list(self.type_definitions)

    def with_attr(self, key: str, value: Any) -> IRModule:
        """The module with one attribute set."""
        new = self.copy()
        new.attrs = DictAttrs({**dict(self.attrs), key: value})
        return new

    def with_attrs(self, values: Mapping[str, Any]) -> IRModule:
        """The module with several attributes set."""
        new = self.copy()
        new.attrs = DictAttrs({**dict(self.attrs), **values})
        return new

    def get_attr(self, key: str, default: Any = None) -> Any:
        """A module attribute, or ``default``."""
        return dict(self.attrs).get(key, default)

    @staticmethod
    def from_expr(expr: Any, functions: Any = None, type_defs: Any = None) -> IRModule:
        """A module whose ``main`` (or the function's ``global_symbol``) is ``expr``, wrapped in a function if need be."""
        if not isinstance(expr, BaseFunc) and not _WRAPPERS:
            raise ArgumentError("import anchorleg.relay before IRModule.from_expr of an expression")
        mod = IRModule(functions, type_defs)
        func = expr if isinstance(expr, BaseFunc) else _WRAPPERS[-1](expr)
        mod[func.get_attr("global_symbol", "main")] = func
        return mod

    def import_from_std(self, file_to_import: str) -> None:
        """Adds a library of the graph language (``"prelude.rly"``, ``"nat.rly"``, ``"gradient.rly"``, ``"core.rly"``), in place."""
        if not _LIBRARIES:
            raise ArgumentError("import anchorleg.relay before import_from_std")
        _LIBRARIES[-1](self, file_to_import)

    def __repr__(self) -> str:
        return self.astext()

    def script(self, *args: Any, **kwargs: Any) -> str:
        """The module as script that reads back as the same module, if it is one of loop programs; else in its text format."""
        from .repr_hooks import script_text

        return script_text(self)

    def show(self, *args: Any, **kwargs: Any) -> None:
        """Prints the module's script."""
        print(self.script())

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The module in its text format."""
        from .repr_hooks import module_text

        return module_text(self, show_meta_data, annotate)


_WRAPPERS: list[Callable[[Any], BaseFunc]] = []


_LIBRARIES: list[Callable[[IRModule, str], None]] = []


def register_library(loader: Callable[[IRModule, str], None]) -> None:
    """Sets how a library is added to a module (the graph language provides this)."""
    _LIBRARIES.append(loader)


def register_expr_wrapper(wrapper: Callable[[Any], BaseFunc]) -> None:
    """Sets how a bare expression becomes a function (the graph language provides this)."""
    _WRAPPERS.append(wrapper)
