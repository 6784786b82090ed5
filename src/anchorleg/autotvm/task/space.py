"""Configurations: the choices a tunable template leaves open, and one set of answers to them.

A template declares knobs on the configuration it is given (``cfg.define_knob("unroll", [0, 1])``); a ``ConfigSpace`` collects
them and enumerates all combinations, a ``ConfigEntity`` is one combination and answers ``cfg["unroll"].val``.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Iterator, Mapping, Sequence

from ...support.errors import ArgumentError


class OtherOptionEntity:
    """One value of a knob."""

    def __init__(self, val: Any) -> None:
        self.val = val

    def __repr__(self) -> str:
        return str(self.val)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OtherOptionEntity) and self.val == other.val

    def __hash__(self) -> int:
        return hash(repr(self.val))


class ConfigEntity:
    """One choice for every knob.

    Parameters
    ----------
    index: the combination's number within its space (None when it is not of a space).
    code_hash: digest of the template's source, if known.
    entity_map: knob name → chosen entity.
    constraints: texts of conditions the choice has to meet.
    """

    is_fallback = False

    def __init__(self, index: int | None, code_hash: str | None, entity_map: Mapping[str, Any], constraints: Sequence[Any]) -> None:
        self.index, self.code_hash = index, code_hash
        self._entity_map, self._constraints = dict(entity_map), list(constraints)
        self.cost: float | None = None
        self.flop = 0

    def __getitem__(self, name: str) -> Any:
        if name not in self._entity_map:
            raise ArgumentError(f"the configuration has no knob {name!r}; it has: {', '.join(self._entity_map) or 'none'}")
        return self._entity_map[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entity_map

    def __setitem__(self, name: str, entity: Any) -> None:
        self._entity_map[name] = entity

    def define_knob(self, name: str, candidate: Sequence[Any]) -> Any:
        """The value chosen for a knob the template declares."""
        return self[name]

    def add_flop(self, flop: float) -> None:
        """Counts floating-point operations of the template."""
        self.flop += float(flop)

    def valid(self) -> bool:
        """Whether no constraint was violated."""
        return not self._constraints

    def raise_error(self, message: str) -> None:
        """Marks the combination as one that can't be used."""
        self._constraints.append(message)

    @property
    def space_map(self) -> Mapping[str, Any]:
        """The chosen entities by knob."""
        return self._entity_map

    def __repr__(self) -> str:
        return f"{self._entity_map},{self.code_hash},{self.index}"


class FallbackConfigEntity(ConfigEntity):
    """A configuration for workloads without records: the first candidate of every knob."""

    is_fallback = True

    def __init__(self) -> None:
        super().__init__(0, None, {}, [])

    def define_knob(self, name: str, candidate: Sequence[Any]) -> Any:
        if name not in self._entity_map:
            self._entity_map[name] = OtherOptionEntity(candidate[0])
        return self._entity_map[name]

    def __repr__(self) -> str:
        return f"{self._entity_map},{self.code_hash}"


class ConfigSpace:
    """All combinations of the knobs that a template declares; itself usable as the configuration while they are collected."""

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: dict[str, list[Any]] = {}
        self._chosen: dict[str, Any] = {}
        self._constraints: list[str] = []
        self.code_hash: str | None = None
        self.cost: float | None = None
        self.flop = 0

    def define_knob(self, name: str, candidate: Sequence[Any]) -> Any:
        """Declares a knob with its values."""
        if not candidate:
            raise ArgumentError(f"knob {name!r} needs at least one value")
        if name not in self.space_map:
            self.space_map[name] = [OtherOptionEntity(v) for v in candidate]
            self._chosen[name] = self.space_map[name][0]
        return self._chosen[name]

    def __getitem__(self, name: str) -> Any:
        return self._chosen[name]

    def add_flop(self, flop: float) -> None:
        """Counts floating-point operations of the template."""
        self.flop += float(flop)

    def valid(self) -> bool:
        """Whether no constraint was violated."""
        return not self._constraints

    def raise_error(self, message: str) -> None:
        """Notes a violated constraint."""
        self._constraints.append(message)

    def __len__(self) -> int:
        return math.prod(len(v) for v in self.space_map.values())

    def get(self, index: int) -> ConfigEntity:
        """The combination of that number; the first knob varies fastest."""
        if not 0 <= index < len(self):
            raise ArgumentError(f"the space has {len(self)} combinations, got the index {index}")
        rest, chosen = index, {}
        for name, values in self.space_map.items():
            rest, at = divmod(rest, len(values))
            chosen[name] = values[at]
        return ConfigEntity(index, self.code_hash, chosen, self._constraints)

    def __iter__(self) -> Iterator[ConfigEntity]:
        return map(self.get, range(len(self)))


Template = Callable[..., Any]
