"""``tvm._ffi.base``: the error class and text helpers."""
from __future__ import annotations

import numpy as np

from ...support.errors import AnchorlegError as TVMError

string_types = (str,)
integer_types = (int, np.integer)
numeric_types = (int, float, np.number)


def py_str(text: bytes | str) -> str:
    """Bytes (one character each, where they are no UTF-8) or text as text."""
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin1")


def c_str(text: str) -> bytes:
    """Text as UTF-8."""
    return text.encode("utf-8")


class OpError(TVMError):
    """An operator is used wrongly."""


def register_error(func_name: object = None, cls: type | None = None) -> object:
    """Classes of errors need no registration here: gives the class back, also as a decorator."""
    if isinstance(func_name, type):
        return func_name
    return cls if cls is not None else (lambda each: each)


__all__ = ["OpError", "TVMError", "c_str", "integer_types", "numeric_types", "py_str", "register_error", "string_types"]
