"""Vector widths and work sizes of the processor that is being compiled for."""
from __future__ import annotations

from typing import Any

from ..runtime.dtype import DataType
from ..target.target import Target

_DEFAULT_BYTES = 16  # where the target says nothing about its vectors
MIN_PARALLEL_WORK = 1 << 16  # simple operations below which waking other threads costs more than it saves


def vector_bytes() -> int:
    """The width of a vector register of the current target, in bytes."""
    target = Target.current(allow_none=True)
    if target is not None and target.kind.name == "c":
        return 1  # plain C has no vectors: one element at a time, of any dtype
    if target is not None and target.kind.name not in ("llvm", "hexagon"):
        return _DEFAULT_BYTES
    from ..target.cpu import resolve_cpu

    return resolve_cpu(target).vector_bytes or _DEFAULT_BYTES


def lanes_of(dtype: str) -> int:
    """Elements of ``dtype`` in a vector register of the current target (at least 1)."""
    return max(1, vector_bytes() // DataType(dtype).itemsize)


def lanes_for(dtypes: Any) -> int:
    """Elements of the widest of these dtypes in a vector register."""
    return min((lanes_of(d) for d in dtypes), default=1)


def power_of_two_at_most(n: int) -> int:
    """The greatest power of two not above ``n`` (at least 1)."""
    return 1 << (max(1, n).bit_length() - 1)


def worth_sharing(elements: Any, cost: int) -> bool:
    """Whether ``elements`` (None: not known) of that many simple operations are worth more than one thread."""
    return elements is None or elements * cost >= MIN_PARALLEL_WORK
