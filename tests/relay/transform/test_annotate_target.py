"""AnnotateTarget."""
from __future__ import annotations

from typing import Any

import pytest

from anchorleg import relay
from anchorleg.ir import IRModule, register_op_attr
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.relay.op.annotation import compiler_begin, compiler_end
from anchorleg.relay.transform import AnnotateTarget
from anchorleg.support.errors import ArgumentError

from .graphs import chain
from .passes import apply, of

TAKEN = {"annotate_a": ("nn.relu", "concatenate", "tanh"), "annotate_b": ("add",)}
for _compiler, _names in TAKEN.items():
    for _name in _names:
        register_op_attr(_name, f"target.{_compiler}", lambda expr: True)
register_op_attr("exp", "target.annotate_a", lambda expr: expr.args[0].checked_type.dtype == "float64")

A, B = "annotate_a", "annotate_b"


def x(name: str = "x", **more: Any) -> relay.Var:
    return relay.var(name, shape=(4, 4), **more)


def begin(expr: Any, compiler: str = A) -> Any:
    return compiler_begin(expr, compiler)


def end(expr: Any, compiler: str = A) -> Any:
    return compiler_end(expr, compiler)


def expect(before: Any, after: Any, targets: Any = A, non_calls: bool = True) -> None:
    mod = of(before)
    text = mod.astext()
    assert_structural_equal(apply(AnnotateTarget(targets, non_calls), mod), of(after), map_free_vars=True)
    assert mod.astext() == text


def test_an_operator_that_is_taken_is_marked() -> None:
    v = x()
    expect(relay.nn.relu(v), end(relay.nn.relu(begin(v))))


def test_the_others_are_marked_for_nobody() -> None:
    v = x()
    expect(relay.exp(relay.nn.relu(v)), end(relay.exp(begin(end(relay.nn.relu(begin(v))), "default")), "default"))


def test_the_question_is_asked_with_types() -> None:
    v, w = x(), x(dtype="float64")
    expect(relay.exp(v), end(relay.exp(begin(v, "default")), "default"))
    expect(relay.exp(w), end(relay.exp(begin(w))))


@pytest.mark.parametrize("non_calls", [True, False])
def test_tuples_go_with_the_operators_around_them(non_calls: bool) -> None:
    a, b = x("a"), x("b")
    parts = [end(relay.nn.relu(begin(v))) for v in (a, b)]
    pair = end(relay.Tuple([begin(p) for p in parts])) if non_calls else relay.Tuple(parts)
    joined = relay.concatenate([a, b], 0)
    expect(relay.concatenate([relay.nn.relu(a), relay.nn.relu(b)], 0), end(relay.Call(joined.op, [begin(pair)], joined.attrs)), non_calls=non_calls)


def test_the_first_compiler_named_is_preferred() -> None:
    register_op_attr("negative", f"target.{A}", lambda e: True)
    register_op_attr("negative", f"target.{B}", lambda e: True)
    v = x()
    expect(relay.negative(v), end(relay.negative(begin(v, B)), B), [B, A])
    expect(relay.negative(v), end(relay.negative(begin(v, A)), A), [A, B])


def test_composite_functions_go_to_the_compiler_they_are_named_after() -> None:
    v, p = x(), x("p")
    func = relay.Function([p], relay.nn.relu(p)).with_attr("Composite", f"{A}.relu")
    expect(relay.Call(func, [v]), end(relay.Call(func, [begin(v)])))
    other = func.with_attr("Composite", "somebody.relu")
    expect(relay.Call(other, [v]), end(relay.Call(other, [begin(v, "default")]), "default"))


@pytest.mark.parametrize("non_calls", [True, False])
@pytest.mark.parametrize("make", [
    lambda v: relay.add(relay.nn.relu(v), v), lambda v: relay.add(relay.add(v, v), v), lambda v: relay.add(relay.add(relay.exp(v), v), relay.tanh(v)),
    lambda v: relay.TupleGetItem(relay.Tuple([relay.add(v, v), v]), 0), lambda v: relay.exp(relay.add(v, relay.nn.relu(v)))])
def test_one_compiler_after_the_other_is_both_at_once(make: Any, non_calls: bool) -> None:
    mod = of(make(x()))
    both = AnnotateTarget([A, B], non_calls)(mod)
    assert_structural_equal(AnnotateTarget(B, non_calls)(AnnotateTarget(A, non_calls)(mod)), both)
    assert_structural_equal(AnnotateTarget([A, B], non_calls)(both), both)


def test_branches_and_conditions_end_their_regions() -> None:
    c, v = relay.var("c", shape=(), dtype="bool"), x()
    expect(relay.If(c, relay.tanh(v), v), relay.If(c, end(relay.tanh(begin(v))), v))


def test_values_of_lets_end_their_regions() -> None:
    v, t = x(), relay.var("t")
    expect(relay.Let(t, relay.tanh(v), relay.tanh(t)), relay.Let(t, end(relay.tanh(begin(v))), end(relay.tanh(begin(t)))))


def test_what_has_no_inputs_is_not_marked() -> None:
    for expr in (relay.zeros((2,), "float32"), relay.Tuple([])):
        mod = of(expr)
        assert AnnotateTarget(A)(mod) is mod


def test_names_are_needed() -> None:
    for wrong in ([], [""], ""):
        with pytest.raises(ArgumentError, match="names of compilers"):
            AnnotateTarget(wrong)


def test_a_long_program() -> None:
    assert isinstance(AnnotateTarget(A)(chain(6000)), IRModule)
