"""Tags: words on an operation that schedules look for (``"elemwise"``, ``"conv2d_nchw"`` …), set for a whole scope."""
from __future__ import annotations

import functools
import threading
from typing import Any, Callable

from ..support.errors import ArgumentError

_LOCAL = threading.local()


class TagScope:
    """The tag of every operation made inside; a context manager, and a decorator of functions."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    @staticmethod
    def get_current() -> TagScope | None:
        """The scope in force in this thread."""
        return getattr(_LOCAL, "scope", None)

    def __enter__(self) -> TagScope:
        if TagScope.get_current() is not None:
            raise ArgumentError(f"tag scopes cannot be nested: {TagScope.get_current().tag!r} is open, cannot open {self.tag!r}")
        _LOCAL.scope = self
        return self

    def __exit__(self, *exc: Any) -> None:
        _LOCAL.scope = None

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def tagged(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """A scope (``with`` or ``@``) whose operations carry ``tag``."""
    return TagScope(tag)


def resolve_tag(tag: str) -> str:
    """The tag to put on a new operation: its own, or that of the open scope (ArgumentError when both are given)."""
    scope = TagScope.get_current()
    if scope is None:
        return tag
    if tag:
        raise ArgumentError(f"the operation has tag {tag!r} inside tag_scope({scope.tag!r}): give only one of them")
    return scope.tag


# What the operators of topi put on their operations.
ELEMWISE, BROADCAST, INJECTIVE, COMM_REDUCE, COMM_REDUCE_IDX = "elemwise", "broadcast", "injective", "comm_reduce", "comm_reduce_idx"


def is_elemwise(tag: str) -> bool:
    """Whether the tag says: same index in and out."""
    return tag == ELEMWISE or tag.startswith("elemwise,")


def is_broadcast(tag: str) -> bool:
    """Whether the tag says element-wise, possibly with broadcast inputs."""
    return is_elemwise(tag) or tag == BROADCAST or tag.startswith("broadcast,")


def is_injective(tag: str) -> bool:
    """Whether the tag says that each output element reads at most one element of each input."""
    return is_broadcast(tag) or tag == INJECTIVE or tag.startswith("injective,")
