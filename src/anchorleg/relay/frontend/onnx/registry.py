"""The table of converters: by domain, operator and the operator set version from which each applies."""
from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from .context import NodeContext

Converter = Callable[["NodeContext"], Any]
DEFAULT_DOMAIN = ""
MICROSOFT = "com.microsoft"
_TABLE: dict[tuple[str, str], list[tuple[int, Converter]]] = {}
_SAME_DOMAIN = {"ai.onnx": DEFAULT_DOMAIN}


def domain_of(name: str) -> str:
    """The domain under its one spelling (``ai.onnx`` is the default domain, the empty name)."""
    return _SAME_DOMAIN.get(name, name)


def op(*names: str, since: int = 1, domain: str = DEFAULT_DOMAIN) -> Callable[[Converter], Converter]:
    """Registers a converter for operators of these names, from version ``since`` of the operator set on.

    A converter takes a :class:`~.context.NodeContext` and returns one expression, or a list with one per output.
    """
    def register(converter: Converter) -> Converter:
        for name in names:
            versions = _TABLE.setdefault((domain, name), [])
            versions.append((since, converter))
            versions.sort(key=lambda v: v[0])
        return converter

    return register


def find(domain: str, op_type: str, version: int) -> Converter | None:
    """The converter for an operator at that version of its operator set, or None."""
    versions = load().get((domain_of(domain), op_type), [])
    at = bisect_right([since for since, _ in versions], version)
    return versions[at - 1][1] if at else None


def load() -> dict[tuple[str, str], list[tuple[int, Converter]]]:
    """The whole table, with every family of converters loaded."""
    from . import ops

    ops.load_all()
    return _TABLE


def supported_ops(domain: str = DEFAULT_DOMAIN) -> list[str]:
    """The operators of a domain that have a converter, sorted (others may still import through their function bodies)."""
    return sorted(name for d, name in load() if d == domain_of(domain))
