"""The common form of ``Executor`` and ``Runtime``: a registered name with typed, checked options."""
from __future__ import annotations

from typing import Any, ClassVar, Mapping, NamedTuple

from ...support.errors import ArgumentError

_TYPE_NAMES = {bool: "IntImm", int: "IntImm", str: "runtime.String"}
_FOUND_NAMES = {bool: "IntImm", int: "IntImm", str: "runtime.String", float: "FloatImm"}


class Option(NamedTuple):
    """An option's type (bool, int or str) and default (None: absent unless given)."""

    type: type
    default: Any = None


class RegisteredConfig:
    """A configuration chosen by name, e.g. ``Executor("aot", {"unpacked-api": True})``.

    Raises ArgumentError for a name that is not registered, an option it does not have, or a value of another type.
    """

    kind: ClassVar[str] = ""
    registry: ClassVar[dict[str, dict[str, Option]]] = {}

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        declared = self._declared(name)
        self.name = name
        values = {k: o.default for k, o in declared.items() if o.default is not None}
        for key, value in dict(options or {}).items():
            values[key] = self._checked(declared, key, value)
        self._attrs = values

    @classmethod
    def _declared(cls, name: str) -> dict[str, Option]:
        if name not in cls.registry:
            raise ArgumentError(f'{cls.kind} "{name}" is not defined; available: {", ".join(sorted(cls.registry))}')
        return cls.registry[name]

    def _checked(self, declared: dict[str, Option], key: str, value: Any) -> Any:
        if key not in declared:
            raise ArgumentError(f'Attribute "{key}" is not available on this {self.kind}; '
                                f'{self.name} has: {", ".join(declared) or "none"}')
        want = declared[key].type
        fits = isinstance(value, want) and not (want is int and isinstance(value, bool))
        if want is bool and isinstance(value, int):
            return bool(value)
        if not fits:
            found = _FOUND_NAMES.get(type(value), type(value).__name__)
            raise ArgumentError(f'Attribute "{key}" should have type "{_TYPE_NAMES[want]}" but instead found "{found}"')
        return value

    @classmethod
    def register(cls, name: str, options: Mapping[str, Option]) -> None:
        """Adds a name with its options."""
        cls.registry[name] = dict(options)

    @classmethod
    def list_registered(cls) -> list[str]:
        """The names that can be used."""
        return sorted(cls.registry)

    @classmethod
    def list_registered_options(cls, name: Any) -> dict[str, str]:
        """Option names of ``name`` with their types."""
        return {k: _TYPE_NAMES[o.type] for k, o in cls._declared(str(name)).items()}

    def __contains__(self, key: str) -> bool:
        return key in self._attrs

    def __getitem__(self, key: str) -> Any:
        if key not in self._attrs:
            raise ArgumentError(f"{self.kind} {self.name!r} has no option {key!r} set; set: {', '.join(self._attrs) or 'none'}")
        return self._attrs[key]

    def get(self, key: str, default: Any = None) -> Any:
        """An option's value, or ``default`` when it is not set."""
        return self._attrs.get(key, default)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self.kind}({self.name!r}, {self._attrs!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.name == other.name and self._attrs == other._attrs  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.kind, self.name, tuple(sorted(self._attrs.items()))))
