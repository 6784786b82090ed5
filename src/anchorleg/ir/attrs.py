"""Typed attributes of operators and functions.

An operator's attributes are a class that lists its fields once::

    class SoftmaxAttrs(Attrs, name="relay.attrs.SoftmaxAttrs"):
        axis = Field(INT, -1, "The axis to normalise over.")

``SoftmaxAttrs(axis=1)`` converts and checks each value, fills defaults, and refuses unknown names.
"""
from __future__ import annotations

from typing import Any, Callable, ClassVar, Iterator

from ..support.errors import ArgumentError
from .expr import IntImm, PrimExpr, as_dim

Convert = Callable[[Any], Any]
_REQUIRED = object()


def _int(v: Any) -> Any:
    if isinstance(v, PrimExpr) and not isinstance(v, IntImm):
        return v
    return int(v)


def _ints(v: Any) -> tuple[Any, ...]:
    if isinstance(v, (int, IntImm)):
        return (int(v),)
    return tuple(as_dim(x) for x in v)


def _optional(convert: Convert) -> Convert:
    def inner(v: Any) -> Any:
        return None if v is None else convert(v)

    inner.__name__ = f"optional {convert.__name__.strip('_')}"
    return inner


def _str(v: Any) -> str:
    if isinstance(v, (str, bytes)):
        return v.decode() if isinstance(v, bytes) else str(v)
    return str(v)


def _bool(v: Any) -> bool:
    return bool(v)


def _float(v: Any) -> float:
    return float(v)


def _raw(v: Any) -> Any:
    return v


def _deep(v: Any) -> Any:
    return tuple(_deep(x) for x in v) if isinstance(v, (list, tuple)) else as_dim(v) if isinstance(v, (int, PrimExpr)) else v


INT, INTS, STR, BOOL, FLOAT, RAW = _int, _ints, _str, _bool, _float, _raw
NESTED_INTS = _deep  # ints in nested tuples, e.g. pad_width
OPT_INT, OPT_INTS, OPT_STR, OPT_BOOL, OPT_FLOAT = map(_optional, (_int, _ints, _str, _bool, _float))
OPT_NESTED = _optional(_deep)


class Field:
    """One attribute: how its value is converted, its default, and what it means."""

    __slots__ = ("convert", "default", "doc")

    def __init__(self, convert: Convert, default: Any = _REQUIRED, doc: str = "") -> None:
        self.convert, self.default, self.doc = convert, default, doc

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is _REQUIRED


class Attrs:
    """Base of attribute classes; behaves as a read-only mapping too (``attrs["axis"]``, ``attrs.keys()``)."""

    __slots__ = ("_values",)
    SCHEMA: ClassVar[dict[str, Field]] = {}
    NAME: ClassVar[str] = "Attrs"
    REGISTRY: ClassVar[dict[str, type[Attrs]]] = {}

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {k: v for k, v in vars(cls).items() if isinstance(v, Field)}
        for key in own:
            delattr(cls, key)
        cls.SCHEMA = {**cls.SCHEMA, **own}
        cls.NAME = name or cls.__name__
        Attrs.REGISTRY[cls.NAME] = cls

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.SCHEMA.keys()
        if unknown:
            raise ArgumentError(f"{self.NAME}: no attribute named {', '.join(sorted(unknown))}; "
                                f"it has: {', '.join(self.SCHEMA) or 'none'}")
        self._values = {k: self._one(k, f, values) for k, f in self.SCHEMA.items()}

    def _one(self, key: str, field: Field, values: dict[str, Any]) -> Any:
        if key not in values:
            if field.required:
                raise ArgumentError(f"{self.NAME}: attribute {key!r} is required ({field.doc or 'no default'})")
            return field.default
        try:
            return field.convert(values[key])
        except (TypeError, ValueError) as exc:
            raise ArgumentError(f"{self.NAME}: attribute {key!r} expects {field.convert.__name__.strip('_')}, "
                                f"got {values[key]!r}") from exc

    def __getattr__(self, key: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[key]
        except KeyError:
            raise AttributeError(f"{self.NAME} has no attribute {key!r}; it has: {', '.join(self.SCHEMA)}") from None

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def keys(self) -> list[str]:
        """The attribute names, in declaration order."""
        return list(self._values)

    def items(self) -> list[tuple[str, Any]]:
        """(name, value) pairs in declaration order."""
        return list(self._values.items())

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return self._values.get(key, default)

    def get_int(self, key: str) -> int:
        """An attribute as an int."""
        return int(self._values[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """An attribute as a tuple of ints."""
        return tuple(int(v) for v in self._values[key])

    def get_str(self, key: str) -> str:
        """An attribute as a string."""
        return str(self._values[key])

    def replace(self, **changes: Any) -> Any:
        """The same attributes with some changed."""
        return type(self)(**{**self._values, **changes})

    def __repr__(self) -> str:
        return f"{self.NAME}({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


class DictAttrs(Attrs, name="DictAttrs"):
    """Attributes without a schema (of functions and modules)."""

    __slots__ = ()

    def __init__(self, values: Any = None, **more: Any) -> None:
        self._values = {**dict(values or {}), **more}

    def __bool__(self) -> bool:
        """Whether there are any: a function without attributes has none, rather than an empty set."""
        return bool(self._values)

    def replace(self, **changes: Any) -> DictAttrs:
        return DictAttrs({**self._values, **changes})


def make_node(name: str, /, **values: Any) -> Any:
    """An attribute object by its registered name (upstream's ``ir.make_node`` for attributes)."""
    if name == "DictAttrs":
        return DictAttrs(values)
    if name not in Attrs.REGISTRY:
        raise ArgumentError(f"no attribute class is registered as {name!r}")
    return Attrs.REGISTRY[name](**values)
