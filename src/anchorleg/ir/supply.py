"""Names and global variables that are unique within a build."""
from __future__ import annotations

from typing import Any, Iterable

from ..support.errors import ArgumentError
from ..support.names import NameSupply as _Names
from .expr import GlobalVar
from .module import IRModule


class NameSupply:
    """Hands out names that have not been handed out or reserved before.

    A prefix is put before names unless ``add_prefix`` is False.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._names = _Names()

    def _full(self, name: str, add_prefix: bool) -> str:
        return f"{self.prefix}_{name}" if self.prefix and add_prefix else name

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """A new name like ``name``, numbered if need be; dots become underscores."""
        return self._names.fresh(self._full(name, add_prefix).replace(".", "_"), separator="_" if add_underscore else "")

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Takes a name out of circulation; returns it in full."""
        full = self._full(name, add_prefix)
        self._names.reserve(full)
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether the name is taken."""
        return self._full(name, add_prefix) in self._names


class GlobalVarSupply:
    """Hands out global variables under unique names.

    Parameters
    ----------
    value: a NameSupply to draw from, or a module (or several) whose functions' names are taken; the first one's name
        (attribute ``mod_name``) is the prefix.
    """

    def __init__(self, value: NameSupply | IRModule | Iterable[IRModule] | None = None) -> None:
        self.name_supply = value if isinstance(value, NameSupply) else NameSupply()
        self._by_name: dict[str, GlobalVar] = {}
        modules = [] if value is None or isinstance(value, NameSupply) else [value] if isinstance(value, IRModule) else list(value)
        if modules:
            self.name_supply.prefix = str(modules[0].get_attr("mod_name", "tvmgen_default"))
        for var in [v for mod in modules for v in mod.functions]:
            self.reserve_global(var)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A new variable, under ``name`` or one like it."""
        return self._enter(GlobalVar(self.name_supply.fresh_name(name, add_prefix)))

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of that very name; made when there is none."""
        full = self.name_supply._full(name, add_prefix)
        if full not in self._by_name:
            self._enter(GlobalVar(full))
        return self._by_name[full]

    def reserve_global(self, global_var: GlobalVar, allow_conflict: bool = False) -> None:
        """Takes a variable's name; ArgumentError when another variable has it, unless ``allow_conflict``."""
        if not allow_conflict and global_var.name_hint in self._by_name:
            raise ArgumentError(f"the name {global_var.name_hint!r} belongs to another global variable; pass allow_conflict=True to replace it")
        self._enter(global_var)

    def _enter(self, var: Any) -> GlobalVar:
        self.name_supply.reserve_name(var.name_hint, add_prefix=False)
        self._by_name[var.name_hint] = var
        return var


def as_name_supply(value: GlobalVarSupply | NameSupply | str) -> NameSupply:
    """The supply of names inside ``value``, or a new one with that prefix."""
    if isinstance(value, GlobalVarSupply):
        return value.name_supply
    return value if isinstance(value, NameSupply) else NameSupply(value)
