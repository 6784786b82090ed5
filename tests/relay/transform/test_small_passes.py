"""FastMath, Legalize, EtaExpand, DynamicToStatic, SplitArgs, DefuseOps, and the passes for external functions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.structural import structural_equal
from anchorleg.ir.transform import PassContext
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.testing.temp_op_attr import TempOpAttr
from anchorleg.relay.transform import (EtaExpand, FastMath, InlineCompilerFunctionsBoundTo, Legalize, MarkCompilerFunctionsAsExtern,
                                       OutlineCompilerFunctionsWithExistingGlobalSymbols, SplitArgs)

from .graphs import random_graph
from .passes import apply, check, count, inputs, module, of, same_values, unchanged, values


# -------------------------------------------------------------------------------------------------------------- FastMath


@pytest.mark.parametrize("name, fast", [("exp", "fast_exp"), ("tanh", "fast_tanh"), ("erf", "fast_erf"), ("nn.softmax", "nn.fast_softmax")])
def test_transcendental_functions_have_fast_forms(name: str, fast: str) -> None:
    head = "def @main(%x: Tensor[(2, 3), float32]) "
    check("FastMath", head + f"{{ {name}(%x) }}", head + f"{{ {fast}(%x) }}")
    unchanged("FastMath", f"def @main(%x: Tensor[(2, 3), float64]) {{ {name}(%x) }}")


@pytest.mark.parametrize("op", [relay.tanh, relay.exp, relay.erf])
def test_not_a_number_stays_so(op: Any) -> None:
    mod = apply(FastMath(), of(op(relay.var("x", shape=(3,)))))
    out = values(mod, np.array([np.nan, 0, 1], "float32"))[0]
    assert np.isnan(out[0]) and np.isfinite(out[1:]).all()


# -------------------------------------------------------------------------------------------------------------- Legalize


def test_rules_of_operators_are_applied() -> None:
    def doubled(attrs: Any, args: Any, types: Any) -> Any:
        return relay.add(args[0], args[0]) if types[0].dtype == "float32" else None

    mod = of(relay.Tuple([relay.negative(relay.var("x", shape=(2,))), relay.negative(relay.var("y", shape=(2,), dtype="int32"))]))
    with TempOpAttr("negative", "FTVMLegalize", doubled):
        after = apply(Legalize(), mod)
    assert count(after, "add") == 1 and count(after, "negative") == 1


def test_other_attribute_names() -> None:
    mod = of(relay.negative(relay.var("x", shape=(2,))))
    with TempOpAttr("negative", "FTVMTest", lambda attrs, args, types: relay.exp(args[0])):
        assert count(apply(Legalize("FTVMTest"), mod), "exp") == 1
    assert Legalize("FTVMTest")(mod) is mod


# ------------------------------------------------------------------------------------------------------------- EtaExpand


def test_constructors_as_values_become_functions() -> None:
    mod = module("type Box[A] { Full(A) }\ndef @main(%x: Tensor[(2), float32]) { let %f = Full; %f(%x) }")
    after = apply(EtaExpand(), mod)
    literals = [n for n in exprs(after["main"].body) if isinstance(n, relay.Function)]
    assert len(literals) == 1 and isinstance(literals[0].body, relay.Call)
    assert structural_equal(apply(EtaExpand(), after), after)


def test_global_functions_on_request() -> None:
    text = """
def @f(%a: float32) -> float32 { negative(%a) }
def @main(%x: float32) { let %g = @f; %g(@f(%x)) }"""
    mod = module(text)
    assert EtaExpand()(mod) is mod
    after = apply(EtaExpand(expand_global_var=True), mod)
    assert len([n for n in exprs(after["main"].body) if isinstance(n, relay.Function)]) == 1
    assert float(values(after, np.float32(3))[0]) == 3


# ------------------------------------------------------------------------------------------------------- DynamicToStatic


def ints(*value: int) -> relay.Expr:
    return relay.const(np.array(value, "int64"))


@pytest.mark.parametrize("make, shape", [
    (lambda x: relay.reshape(x, ints(3, 2)), (3, 2)), (lambda x: relay.tile(x, ints(2, 1)), (4, 3)),
    (lambda x: relay.broadcast_to(x, ints(4, 2, 3)), (4, 2, 3)), (lambda x: relay.zeros(ints(2, 5), "float32"), (2, 5)),
    (lambda x: relay.strided_slice(x, ints(0, 1), ints(2, 3), ints(1, 1)), (2, 2)),
    (lambda x: relay.reshape(x, relay.shape_of(relay.var("y", shape=(6, 1)), dtype="int64")), (6, 1)),
    (lambda x: relay.reshape(x, relay.concatenate([relay.shape_of(x, "int64"), ints(1)], 0)), (2, 3, 1)),
])
def test_shapes_that_are_constant_after_all(make: Any, shape: tuple[int, ...]) -> None:
    x = relay.var("x", shape=(2, 3))
    body = make(x)
    after = apply("DynamicToStatic", of(relay.Function([x, *(v for v in relay.analysis.free_vars(body) if v is not x)], body)))
    assert after["main"].checked_type.ret_type.concrete_shape == shape and "dyn." not in after.astext()


def test_shapes_that_are_inputs_stay_dynamic() -> None:
    unchanged("DynamicToStatic", 'def @main(%x: Tensor[(2, 3), float32], %s: Tensor[(2), int64]) { dyn.reshape(%x, %s) }')


def test_a_result_that_folding_alone_makes_known_gets_its_type():
    x = relay.var("x", shape=(2, 3))
    after = apply("DynamicToStatic", of(relay.Function([x], relay.zeros(relay.shape_of(x), "float32"))))
    assert after["main"].ret_type == after["main"].body.checked_type == relay.TensorType((2, 3), "float32")


# ------------------------------------------------------------------------------------------------- SplitArgs and DefuseOps


def test_long_concatenations_are_taken_in_steps() -> None:
    parts = [relay.var(f"x{i}", shape=(2, 3)) for i in range(7)]
    mod = of(relay.Function(parts, relay.concatenate(parts, axis=1)))
    after = same_values(SplitArgs(4), mod)
    assert count(after, "concatenate") == 3 and all(len(n.fields) <= 3 for n in exprs(after["main"]) if isinstance(n, relay.Tuple))
    assert SplitArgs(0)(mod) is mod and SplitArgs(20)(mod) is mod


@pytest.mark.parametrize("seed", range(5))
def test_what_was_fused_comes_apart_again(seed: int) -> None:
    mod = random_graph(seed)
    with PassContext(opt_level=3):
        after = apply("DefuseOps", apply("FuseOps", mod))
    assert not any(isinstance(n, relay.Function) for n in exprs(after["main"].body))
    args = inputs(mod)
    for got, want in zip(values(after, *args), values(mod, *args), strict=True):
        np.testing.assert_array_equal(got, want)


# ------------------------------------------------------------------------------------------------------ external functions

EXTERNAL = """
def @main(%x: Tensor[(2), float32]) {
  %0 = fn (%a: Tensor[(2), float32], Compiler="one", global_symbol="one_0", Primitive=1) -> Tensor[(2), float32] {
    fn (%b: Tensor[(2), float32], Composite="one.double") -> Tensor[(2), float32] { add(%b, %b) }(%a)
  };
  %1 = fn (%a: Tensor[(2), float32], Compiler="two", global_symbol="two_0", Primitive=1) -> Tensor[(2), float32] { negative(%a) };
  %1(%0(%x))
}"""


def test_literals_with_a_symbol_become_global() -> None:
    mod = module(EXTERNAL)
    after = apply(OutlineCompilerFunctionsWithExistingGlobalSymbols("one"), mod)
    assert sorted(v.name_hint for v in after.functions) == ["main", "one_0"]
    every = apply(OutlineCompilerFunctionsWithExistingGlobalSymbols(), mod)
    assert sorted(v.name_hint for v in every.functions) == ["main", "one_0", "two_0"]
    assert OutlineCompilerFunctionsWithExistingGlobalSymbols("three")(mod) is mod


def test_compiled_functions_are_marked() -> None:
    outlined = apply(OutlineCompilerFunctionsWithExistingGlobalSymbols(), module(EXTERNAL))
    after = MarkCompilerFunctionsAsExtern("one")(outlined)
    assert dict(after["one_0"].attrs.items()) == {"Extern": 1} and after["two_0"].get_attr("Compiler") == "two"


def test_partitioning_can_be_undone() -> None:
    outlined = apply(OutlineCompilerFunctionsWithExistingGlobalSymbols("one"), module(EXTERNAL))
    after = apply(InlineCompilerFunctionsBoundTo([outlined.get_global_var("one_0")]), outlined)
    assert len(after.functions) == 1 and count(after, "add") == 1


def test_places_in_post_order() -> None:
    mod = module("def @main(%x: float32, %y: float32) { match ((add(%x, %y), %y)) { (%a, %b) => multiply(%a, exp(%b)), } }")
    numbered = relay.transform.CapturePostDfsIndexInSpans()(mod)
    assert structural_equal(numbered, mod)
    main = numbered["main"]
    assert [p.span.line for p in main.params] == [0, 1] and str(main.span.source_name) == "index"
    total, pair = main.body.data.fields[0], main.body.data
    assert main.span.column == -1 and total.span.column == pair.span.line and main.span.line > main.body.span.line > pair.span.line > total.span.line
