"""What gradient rules share: registration by table, constants of an expression's dtype, shapes that must be known."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ....ir.expr import RelayExpr
from ....support.errors import UnsupportedOpError
from ...expr import Call, const
from ..op import register_gradient
from ..tensor import zeros_like
from ..transform import collapse_sum_like

Gradients = Sequence[RelayExpr]
GradientRule = Callable[[Call, RelayExpr], Gradients]


def register_table(rules: Mapping[str, GradientRule]) -> None:
    """Registers each operator's rule."""
    for name, rule in rules.items():
        register_gradient(name, rule)


def number(value: float, like: RelayExpr) -> RelayExpr:
    """A scalar of the dtype of ``like``."""
    return const(value, like.checked_type.dtype)


def sizes(arg: RelayExpr) -> tuple[int, ...] | None:
    """The sizes of ``arg``, None when one of them is unknown."""
    try:
        return tuple(int(d) for d in arg.checked_type.concrete_shape)
    except TypeError:
        return None


def static_shape(call: Call, arg: RelayExpr) -> tuple[int, ...]:
    """The sizes of ``arg``; UnsupportedOpError when one is unknown."""
    found = sizes(arg)
    if found is None:
        raise UnsupportedOpError(f"the gradient of {call.op.name} needs sizes that are known, got an argument of type {arg.checked_type}")
    return found


def summed_like(call: Call, grad: RelayExpr, arg: RelayExpr) -> RelayExpr:
    """``grad``, of the shape of ``call``, summed over the axes along which ``arg`` was broadcast."""
    known = sizes(arg)
    return grad if known is not None and known == sizes(call) else collapse_sum_like(grad, arg)


def require_layout(call: Call, name: str, *expected: str) -> str:
    """The layout attribute ``name``; UnsupportedOpError when it is none of ``expected``."""
    layout: Any = getattr(call.attrs, name)
    if layout not in expected:
        raise UnsupportedOpError(f"the gradient of {call.op.name} expects {name} {' or '.join(map(repr, expected))}, got {layout!r}")
    return layout


def no_flow(call: Call, grad: RelayExpr) -> Gradients:
    """Zero for every input: the operator is constant almost everywhere."""
    return [zeros_like(a) for a in call.args]
