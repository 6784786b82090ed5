"""Pattern tables by the name of the external compiler they are for."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ....support.errors import ArgumentError

Table = Sequence[Any]  # entries (name, pattern) or (name, pattern, check), as MergeComposite takes them
_TABLES: dict[str, Callable[[], Table]] = {}


def register_pattern_table(compiler: str, table: Callable[[], Table] | None = None) -> Any:
    """Sets the pattern table of an external compiler; also a decorator.

    ``table()`` gives the entries for ``MergeComposite``; it is called anew each time it is asked for.
    """
    def register(make: Callable[[], Table]) -> Callable[[], Table]:
        if not callable(make):
            raise ArgumentError(f"register_pattern_table({compiler!r}): a function that returns the table is expected, got {type(make).__name__}")
        _TABLES[compiler] = make
        return make

    return register if table is None else register(table)


def get_pattern_table(compiler: str) -> Table | None:
    """The pattern table of an external compiler; None when none was registered."""
    make = _TABLES.get(compiler)
    return None if make is None else make()


__all__ = ["get_pattern_table", "register_pattern_table"]
