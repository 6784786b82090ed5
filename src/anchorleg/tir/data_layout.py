"""Names of memory layouts, such as ``NCHW16c``, and the index arithmetic between two of them.

A capital letter is an axis of the tensor.  A number with a small letter splits a block of that size off the axis of the
same letter: in ``NCHW16c`` the last axis runs over 16 neighbouring channels.  An axis may be split more than once
(``OIHW4i16o4i``); of its parts the capital is the slowest and those further right are the faster ones.
"""
from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple, Sequence

from ..ir.expr import Any as AnyDim, PrimExpr, as_dim
from ..support.errors import ArgumentError, TypeMismatchError

UNDEF = "__undef__"
_TOKEN = re.compile(r"(\d*)([A-Za-z])")


class LayoutAxis(NamedTuple):
    """One position of a layout: its letter, and the block size when it is a split-off part (else 0)."""

    letter: str
    factor: int

    @property
    def is_primal(self) -> bool:
        """Whether this is an axis of the tensor rather than a block split off one."""
        return self.factor == 0

    @property
    def primal(self) -> str:
        """The capital letter of the axis this position belongs to."""
        return self.letter.upper()


@lru_cache(maxsize=4096)
def _parse(name: str) -> tuple[LayoutAxis, ...]:
    axes: list[LayoutAxis] = []
    at = 0
    for m in _TOKEN.finditer(name):
        if m.start() != at:
            break
        at = m.end()
        axes.append(_axis(name, m[1], m[2]))
    if at != len(name):
        raise ArgumentError(f"layout {name!r}: cannot read {name[at:]!r}; expected capital letters for axes and, for blocks, "
                            "a size with a small letter, e.g. 'NCHW16c'")
    _check(name, axes)
    return tuple(axes)


def _axis(name: str, digits: str, letter: str) -> LayoutAxis:
    if letter.isupper():
        if digits:
            raise ArgumentError(f"layout {name!r}: axis {letter} takes no size; blocks are written with a small letter")
        return LayoutAxis(letter, 0)
    if not digits or int(digits) < 1:
        raise ArgumentError(f"layout {name!r}: block {letter!r} needs a size of at least 1, e.g. '4{letter}'")
    return LayoutAxis(letter, int(digits))


def _check(name: str, axes: Sequence[LayoutAxis]) -> None:
    capitals = [a.letter for a in axes if a.is_primal]
    if len(set(capitals)) != len(capitals):
        raise ArgumentError(f"layout {name!r}: an axis occurs twice")
    loose = [a.letter for a in axes if a.primal not in capitals]
    if loose:
        raise ArgumentError(f"layout {name!r}: block {loose[0]!r} has no axis {loose[0].upper()!r}")


class Layout:
    """A layout by name; ``Layout("__undef__")`` is the one that is not known.

    Equal names are equal layouts.  Raises ArgumentError for text that is no layout.
    """

    __slots__ = ("name", "axes")

    def __init__(self, name: str, dtype: str = "int64") -> None:
        self.name = name.name if isinstance(name, Layout) else str(name)
        self.axes: tuple[LayoutAxis, ...] = () if self.name == UNDEF else _parse(self.name)

    @staticmethod
    def undef() -> Layout:
        """The layout that is not known."""
        return Layout(UNDEF)

    @property
    def defined(self) -> bool:
        """Whether the layout is known."""
        return self.name != UNDEF

    @property
    def ndim(self) -> int:
        """The rank of a tensor in this layout."""
        return len(self.axes)

    @property
    def ndim_primal(self) -> int:
        """The rank of the tensor before blocks are split off."""
        return sum(a.is_primal for a in self.axes)

    def __len__(self) -> int:
        return len(self.axes)

    def __contains__(self, axis: object) -> bool:
        return any(a.letter == axis for a in self.axes)

    def __getitem__(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"layout {self.name!r} has {len(self)} axes, asked for {index}")
        return self.axes[index].letter

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Layout) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name!r})"

    def index_of(self, axis: str) -> int:
        """The position of a letter, or -1."""
        return next((i for i, a in enumerate(self.axes) if a.letter == axis), -1)

    def factor_of(self, axis: str) -> int:
        """The size of the block split off an axis (the product when there are several); -1 when there is none."""
        factors = [a.factor for a in self.axes if a.letter == str(axis).lower()]
        product = 1
        for f in factors:
            product *= f
        return product if factors else -1

    def split(self, axis: str, target_pos: int, factor: int) -> Layout:
        """The layout with a block of ``factor`` split off ``axis`` and put at ``target_pos``."""
        if axis not in self:
            raise ArgumentError(f"layout {self.name!r} has no axis {axis!r} to split")
        tokens = [_token(a) for a in self.axes]
        tokens.insert(target_pos, f"{factor}{axis.lower()}")
        return Layout("".join(tokens))

    def sub_layout(self, pos: int, length: int) -> Layout:
        """The layout of ``length`` positions from ``pos``."""
        return Layout("".join(_token(a) for a in self.axes[pos:pos + length]))

    def expand_primal(self, dst_layout: Layout) -> Layout:
        """This layout with the axes that only ``dst_layout`` has put in front."""
        extra = "".join(a.letter for a in dst_layout.axes if a.is_primal and a.letter not in self)
        return Layout(extra + self.name)

    def convertible(self, dst_layout: Layout) -> bool:
        """Whether both are layouts of the same axes."""
        return self.defined and dst_layout.defined and _primals(self) == _primals(dst_layout)


def _primals(layout: Layout) -> set[str]:
    return {a.letter for a in layout.axes if a.is_primal}


def _token(axis: LayoutAxis) -> str:
    return axis.letter if axis.is_primal else f"{axis.factor}{axis.letter}"


class BijectiveLayout:
    """The conversion between two layouts of the same axes.

    Indices and shapes may be ints or expressions.  ArgumentError when the layouts have different axes.
    """

    __slots__ = ("src_layout", "dst_layout")

    def __init__(self, src_layout: Layout | str, dst_layout: Layout | str) -> None:
        self.src_layout, self.dst_layout = Layout(src_layout), Layout(dst_layout)
        if not self.src_layout.convertible(self.dst_layout):
            raise ArgumentError(f"cannot convert layout {self.src_layout.name!r} to {self.dst_layout.name!r}: "
                                "both must be known and have the same axes (capital letters)")

    def forward_index(self, index: Sequence[Any]) -> list[Any]:
        """An index in the source layout → the index of the same element in the destination layout."""
        return _convert_index(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> list[Any]:
        """An index in the destination layout → the index of the same element in the source layout."""
        return _convert_index(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> list[Any]:
        """A shape in the source layout → the shape in the destination layout (blocks rounded up)."""
        return _convert_shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> list[Any]:
        """A shape in the destination layout → the shape in the source layout (blocks rounded up)."""
        return _convert_shape(self.dst_layout, self.src_layout, shape)

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}->{self.dst_layout.name})"


def axis_strides(layout: Layout) -> list[int]:
    """For each position, how far one step along it moves along its axis: ``NCHW16c`` → [1, 16, 1, 1, 1]."""
    strides: list[int] = []
    for i, axis in enumerate(layout.axes):
        step = 1
        for j, other in enumerate(layout.axes):
            faster = not other.is_primal and other.primal == axis.primal and (axis.is_primal or j > i)
            step *= other.factor if faster and j != i else 1
        strides.append(step)
    return strides


def _along_axes(layout: Layout, index: Sequence[Any]) -> dict[str, Any]:
    """The index along each axis of the tensor."""
    if len(index) != len(layout):
        raise TypeMismatchError(f"layout {layout.name!r} expects {len(layout)} indices or sizes, got {len(index)}")
    total: dict[str, Any] = {}
    for axis, step, i in zip(layout.axes, axis_strides(layout), index):
        term = i if step == 1 else i * step
        total[axis.primal] = total[axis.primal] + term if axis.primal in total else term
    return total


def _convert_index(src: Layout, dst: Layout, index: Sequence[Any]) -> list[Any]:
    along = _along_axes(src, index)
    out = []
    for axis, step in zip(dst.axes, axis_strides(dst)):
        i = along[axis.primal]
        i = i if step == 1 else _floordiv(i, step)
        out.append(i if axis.is_primal else _floormod(i, axis.factor))
    return out


def _convert_shape(src: Layout, dst: Layout, shape: Sequence[Any]) -> list[Any]:
    if len(shape) != len(src):
        raise TypeMismatchError(f"layout {src.name!r} expects a shape of rank {len(src)}, got rank {len(shape)}")
    whole: dict[str, Any] = {}
    for axis, step, size in zip(src.axes, axis_strides(src), map(as_dim, shape)):
        if axis.is_primal:
            whole[axis.letter] = _times(size, step)
        elif isinstance(size, int) and size != axis.factor:
            raise TypeMismatchError(f"layout {src.name!r}: block {axis.letter!r} has size {axis.factor}, the shape says {size}")
    return [_ceildiv(whole[a.letter], step) if a.is_primal else a.factor for a, step in zip(dst.axes, axis_strides(dst))]


def _times(size: Any, step: int) -> Any:
    return size if step == 1 or isinstance(size, AnyDim) else size * step


def _ceildiv(size: Any, step: int) -> Any:
    if step == 1 or isinstance(size, AnyDim):
        return size
    return -(-size // step) if isinstance(size, int) else _floordiv(size + (step - 1), step)


def _floordiv(value: Any, by: int) -> Any:
    if isinstance(value, PrimExpr):
        from .op import floordiv

        return floordiv(value, by)
    return value // by


def _floormod(value: Any, by: int) -> Any:
    if isinstance(value, PrimExpr):
        from .op import floormod

        return floormod(value, by)
    return value % by


def layout(layout_str: str, dtype: str = "int64") -> Layout:
    """A layout by name."""
    return Layout(layout_str, dtype)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout:
    """The conversion between two layouts; ArgumentError when they have different axes."""
    return BijectiveLayout(src_layout, dst_layout)
