"""Inline, InlineAll and RemoveUnusedFunctions."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.transform import Inline, InlineAll, RemoveUnusedFunctions

from .passes import apply, module, values

CALLS = """
def @double(%a: Tensor[(2), float32]{mark}) -> Tensor[(2), float32] {{ add(%a, %a) }}
def @main(%x: Tensor[(2), float32]) {{ multiply(@double(%x), @double(negative(%x))) }}
"""
SUM = """
def @sum(%n: int32, Inline=1) -> int32 { if (equal(%n, 0)) { %n } else { add(@sum(subtract(%n, 1)), %n) } }
def @main(%n: int32) -> int32 { @sum(%n) }"""


def test_calls_of_marked_functions_become_their_bodies() -> None:
    after = apply(Inline(), module(CALLS.format(mark=", Inline=1")))
    assert_structural_equal(after, module("def @main(%x: Tensor[(2), float32]) { %0 = negative(%x); multiply(add(%x, %x), add(%0, %0)) }"),
                            map_free_vars=True)


def test_unmarked_functions_stay() -> None:
    mod = module(CALLS.format(mark=""))
    assert Inline()(mod) is mod


def test_for_executors_without_calls_all_are_inlined() -> None:
    mod = module(CALLS.format(mark=""))
    after = apply(InlineAll(), mod)
    assert "double" not in after["main"].__repr__()
    a = np.array([1, 2], "float32")
    np.testing.assert_array_equal(values(after, a), values(mod, a))


@pytest.mark.parametrize("each", [Inline, InlineAll])
def test_recursion_is_left_alone(each: type) -> None:
    mod = module(SUM)
    after = apply(each(), mod)
    assert len(after.functions) == 2 and int(values(after, np.int32(4))[0]) == 10


def test_each_place_gets_variables_of_its_own() -> None:
    after = apply(Inline(), module("""
def @f(%a: float32, Inline=1) { let %t = add(%a, 1f); multiply(%t, %t) }
def @main(%x: float32) { add(@f(%x), @f(exp(%x))) }"""))
    names = [n.var for n in exprs(after["main"]) if isinstance(n, relay.Let)]
    assert len(names) == 2 and names[0] is not names[1]
    np.testing.assert_allclose(values(after, np.float32(0)), [5.0])


def test_functions_for_external_compilers_become_literals() -> None:
    after = apply(Inline(), module(CALLS.format(mark=', Inline=1, Compiler="other"')))
    called = [n.op for n in exprs(after["main"].body) if isinstance(n, relay.Call) and isinstance(n.op, relay.Function)]
    assert len(called) == 2 and all(f.get_attr("Compiler") == "other" for f in called) and len(after.functions) == 1


def test_a_chain_of_functions() -> None:
    n = 1500
    text = "".join(f"def @f{i}(%a: float32, Inline=1) -> float32 {{ negative(@f{i + 1}(%a)) }}\n" for i in range(n))
    mod = module(text + f"def @f{n}(%a: float32, Inline=1) -> float32 {{ %a }}\ndef @main(%x: float32) -> float32 {{ @f0(%x) }}")
    after = apply(Inline(), mod)
    assert len(after.functions) == 1 and float(values(after, np.float32(2))[0]) == 2


def test_literals_that_are_called_go() -> None:
    after = apply(InlineAll(), module("def @main(%x: float32) { fn (%a: float32) { add(%a, %a) }(exp(%x)) }"))
    assert_structural_equal(after, module("def @main(%x: float32) { %0 = exp(%x); add(%0, %0) }"), map_free_vars=True)


def test_functions_out_of_reach_go() -> None:
    mod = module("""
def @used(%a: float32) { %a }
def @other(%a: float32) { @third(%a) }
def @third(%a: float32) { %a }
def @main(%x: float32) { @used(%x) }""")
    assert sorted(v.name_hint for v in RemoveUnusedFunctions()(mod).functions) == ["main", "used"]
    assert sorted(v.name_hint for v in RemoveUnusedFunctions(["other"])(mod).functions) == ["other", "third"]
    kept = RemoveUnusedFunctions()(mod)
    assert RemoveUnusedFunctions()(kept) is kept
