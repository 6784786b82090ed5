"""Names of generated C functions, variables and constants."""
from __future__ import annotations

from typing import Sequence

from ...runtime.name_transforms import sanitize_name
from ...support.errors import ArgumentError

_PREFIX = "TVM"


def _checked(name: str, what: str) -> str:
    if not name:
        raise ArgumentError(f"{what} name is empty")
    if not name.startswith(_PREFIX):
        raise ArgumentError(f"{what} not TVM prefixed: got {name!r}; use prefix_name first")
    return name


def to_c_function_style(original_name: str) -> str:
    """A prefixed name as a C function's: words joined, each with a capital (``TVM_my_model`` → ``TVMMyModel``)."""
    first, *rest = _checked(original_name, "Function").split("_")
    return first + "".join(w[:1].upper() + w[1:] for w in rest)


def to_c_variable_style(original_name: str) -> str:
    """A prefixed name as a C variable's: small letters."""
    return _checked(original_name, "Variable").lower()


def to_c_constant_style(original_name: str) -> str:
    """A prefixed name as a C constant's: capital letters."""
    return _checked(original_name, "Constant").upper()


def _combined(prefix: str, names: str | Sequence[str]) -> str:
    if isinstance(names, str):
        if not names:
            raise ArgumentError("Name is empty")
        return f"{prefix}_{names}"
    if not names:
        raise ArgumentError("Name segments empty")
    if not all(names):
        raise ArgumentError("Name segment is empty")
    return "_".join([prefix, *names])


def prefix_name(names: str | Sequence[str]) -> str:
    """The name (or its words) with the prefix ``TVM``."""
    return _combined(_PREFIX, names)


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """The name (or its words) with the prefix ``TVMGen``."""
    return _combined(f"{_PREFIX}Gen", names)


__all__ = ["prefix_generated_name", "prefix_name", "sanitize_name", "to_c_constant_style", "to_c_function_style", "to_c_variable_style"]
