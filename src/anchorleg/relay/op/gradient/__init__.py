"""Gradient rules: how the gradient of an operator's output becomes those of its inputs, by family.

A rule ``(call, gradient) -> [gradient of each input]`` gets a typed call and an expression of the output's type.  Rules use
only operators that inference has.  They are loaded when a program is first differentiated; a rule that a user registers
at a level above 10 (:func:`anchorleg.relay.op.register_gradient`) wins over the one here.
"""
from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any

from ....ir.op import Op
from ....support.errors import UnsupportedOpError

_FAMILIES = ("elementwise", "broadcast", "creation", "reduce", "rearrange", "indexing", "softmax", "loss", "dense", "conv", "pooling")


@lru_cache(maxsize=1)
def load_all() -> None:
    """Registers the rules of every family; cheap after the first time."""
    for family in _FAMILIES:
        importlib.import_module(f"{__name__}.{family}")


def rule_of(op: Op) -> Any:
    """The operator's gradient rule; UnsupportedOpError when it has none."""
    load_all()
    rule = op.get_attr("FPrimalGradient")
    if rule is None:
        raise UnsupportedOpError(f"the operator {op.name} has no gradient: expected a rule registered with "
                                 f"relay.op.register_gradient({op.name!r}, rule)")
    return rule
