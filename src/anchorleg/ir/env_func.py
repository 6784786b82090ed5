"""Functions known by name: what a type relation, or an attribute, refers to in saved programs."""
from __future__ import annotations

from typing import Any

from .node import DATA, Node


class EnvFunc(Node):
    """The function registered under ``name``; equal to another by that name."""

    __slots__ = ("name",)
    FIELDS = {"name": DATA}

    def __init__(self, name: str) -> None:
        self.name, self.span = name, None

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The function of that name; whether it is registered is found out when it is called."""
        return EnvFunc(name)

    def __call__(self, *args: Any) -> Any:
        from ..runtime.registry import get_global_func

        return get_global_func(self.name)(*args)

    @property
    def func(self) -> Any:
        """The registered function itself."""
        from ..runtime.registry import get_global_func

        return get_global_func(self.name)
