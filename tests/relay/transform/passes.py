"""What the tests of passes share: programs from text, values by the operators' numpy rules."""
from __future__ import annotations

from typing import Any

import numpy as np

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.ir.transform import Pass, get_pass
from anchorleg.relay.transform import load_all
from anchorleg.relay.transform.common import is_op
from anchorleg.relay.analysis.variables import exprs

load_all()


def module(text: str) -> IRModule:
    """A typed module from text (the version line is added)."""
    return get_pass("InferType")(relay.parse('#[version = "0.0.5"]\n' + text))


def of(expr: Any) -> IRModule:
    """A typed module whose main is ``expr``."""
    return get_pass("InferType")(IRModule.from_expr(expr))


def apply(each: Pass | str, mod: IRModule) -> IRModule:
    """The pass run, and the result typed."""
    each = get_pass(each) if isinstance(each, str) else each
    return get_pass("InferType")(each(mod))


def check(each: Pass | str, before: str, after: str) -> None:
    """The pass turns one text into the other and leaves its input as it was."""
    mod = module(before)
    text = mod.astext()
    result = apply(each, mod)
    assert_structural_equal(result, module(after), map_free_vars=True)
    assert mod.astext() == text


def unchanged(each: Pass | str, text: str) -> None:
    """The pass gives back the very module it got."""
    mod = module(text)
    each = get_pass(each) if isinstance(each, str) else each
    assert each(mod) is mod


def values(mod: IRModule, *args: np.ndarray) -> list[np.ndarray]:
    """The results of main by the operators' numpy rules."""
    result = relay.create_executor("debug", mod=mod, target="numpy").evaluate()(*args)
    return [r.numpy() for r in result] if hasattr(result, "fields") else [result.numpy()]


def inputs(mod: IRModule, seed: int = 0) -> list[np.ndarray]:
    """Seeded values for main's parameters."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(p.checked_type.concrete_shape).astype(p.checked_type.dtype) for p in mod["main"].params]


def same_values(each: Pass | str, mod: IRModule, rtol: float = 1e-5) -> IRModule:
    """The pass changes no value; the module after it."""
    result = apply(each, mod)
    args = inputs(mod)
    for a, b in zip(values(mod, *args), values(result, *args)):
        np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-5)
    return result


def count(mod: IRModule, *names: str) -> int:
    """How many calls of these operators main holds."""
    return sum(is_op(n, *names) for n in exprs(mod["main"]))
