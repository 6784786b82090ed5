"""Programs without functions as values: before and after, values, and what is refused."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.structural import assert_structural_equal
from anchorleg.ir.type import FuncType
from anchorleg.ir.visit import post_order
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.transform.defunctionalization import Defunctionalization, defunctionalize
from anchorleg.support.errors import ArgumentError, UnsupportedOpError

LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
MAP = """def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil, } }\n"""
FOLD = """def @fold[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B {
  match (%l) { Cons(%x, %rest) => @fold(%f, %f(%z, %x), %rest), Nil => %z, } }\n"""


def parsed(text: str) -> IRModule:
    return relay.parse('#[version = "0.0.5"]\n' + text)


def first_order(mod: IRModule) -> IRModule:
    """The module made from main alone, typed; the old one stays as it was."""
    text = mod.astext()
    func, result = defunctionalize(mod["main"], mod)
    assert mod.astext() == text
    result["main"] = func
    result = relay.transform.InferType()(relay.transform.RemoveUnusedFunctions()(result))
    for name in result.functions:
        for node in exprs(result[name].body):
            values = [*node.args, node] if isinstance(node, relay.Call) else [node] if isinstance(node, relay.Var) else []
            assert not any(isinstance(t, FuncType) for v in values for t in post_order(v.checked_type)), node
    return result


def values(mod: IRModule, *args: Any) -> Any:
    return relay.create_executor("debug", mod=mod, target="numpy").evaluate()(*args)


def same(text: str, *args: Any, times: int = 1) -> IRModule:
    mod = parsed(text)
    result = first_order(mod)
    np.testing.assert_array_equal(values(result, *args).numpy(), values(mod, *args).numpy())
    return result


def test_a_function_becomes_a_constructor_and_its_calls_matches() -> None:
    mod = parsed("""def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
        def @main(%a: float32, %x: float32) -> float32 { @twice(fn (%y: float32) -> float32 { add(%a, %y) }, %x) }""")
    assert_structural_equal(first_order(mod), parsed("""type Function { Of_main_fn(float32), }
        def @main_fn(%a: float32, %y: float32) -> float32 { add(%a, %y) }
        def @apply(%f: Function[], %x0: float32) -> float32 { match (%f) { Of_main_fn(%c0) => @main_fn(%c0, %x0), } }
        def @twice_1(%f: Function[], %x: float32) -> float32 { @apply(%f, @apply(%f, %x)) }
        def @main(%a: float32, %x: float32) -> float32 { @twice_1(Of_main_fn(%a), %x) }"""))


def test_polymorphic_functions_are_copied_for_each_type() -> None:
    result = same(LIST + MAP + FOLD + """def @id[A](%x: A) -> A { %x }
        def @main(%a: float32, %n: int32) -> float32 {
          let %l = @map(@id, Cons(%a, Cons(exp(%a), Nil)));
          let %k = @map(fn (%i: int32) -> int32 { add(%i, %n) }, Cons(%n, Nil));
          let %s = @fold(fn (%z: int32, %i: int32) -> int32 { multiply(%z, %i) }, 3, %k);
          @fold(fn (%z: float32, %x: float32) -> float32 { subtract(%x, %z) }, cast(%s, dtype="float32"), %l) }""", np.float32(0.5), np.int32(4))
    names = {v.name_hint for v in result.functions}
    assert {"map_1", "map_2", "fold_1", "fold_2", "id_1"} <= names and not {"map", "fold", "id"} & names


def test_functions_that_are_given_back_held_and_chosen() -> None:
    same("""def @compose[A, B, C](%f: fn (A) -> B, %g: fn (B) -> C) -> fn (A) -> C { fn (%x: A) -> C { %g(%f(%x)) } }
        def @main(%a: Tensor[(3), float32], %c: bool) -> Tensor[(3), float32] {
          let %add = fn (%x: Tensor[(3), float32]) -> Tensor[(3), float32] { add(%x, %a) };
          let %h = if (%c) { @compose(%add, %add) } else { %add };
          let %r = ref(%h); let %t = (%r, fn (%y: Tensor[(3), float32]) -> Tensor[(3), float32] { multiply(%y, %a) });
          ref_write(%r, @compose(ref_read(%t.0), %t.1)); %0 = ref_read(%r); %0(fn (%z: Tensor[(3), float32]) { tanh(%z) }(%a)) }""",
         np.arange(3, dtype="float32"), np.array(True))


def test_local_functions_that_call_themselves() -> None:
    result = same("""def @main(%n: int32, %x: float32) -> float32 {
          let %step = fn (%v: float32) -> float32 { multiply(%v, 1.5f) };
          let %loop = fn (%i: int32, %v: float32) -> float32 { if (equal(%i, %n)) { %v } else { %loop(add(%i, 1), %step(%v)) } };
          %loop(0, %x) }""", np.int32(5), np.float32(2))
    assert len(result.type_definitions) == 2  # one for each type of function


def test_continuations() -> None:
    text = LIST + """def @sum(%k: fn (int32) -> int32, %l: List[int32]) -> int32 {
          match (%l) { Cons(%x, %rest) => @sum(fn (%n: int32) -> int32 { add(%x, %k(%n)) }, %rest), Nil => %k(0), } }
        def @main(%n: int32) -> int32 { @sum(fn (%x: int32) -> int32 { %x }, Cons(%n, Cons(add(%n, 1), Cons(7, Nil)))) }"""
    result = same(text, np.int32(3))
    (data,) = [d for v, d in result.type_definitions.items() if v.name_hint == "Function"]
    assert any(any("Function" in str(t) for t in c.inputs) for c in data.constructors)  # a continuation holds one


def test_programs_without_functions_as_values_stay() -> None:
    mod = parsed("def @f(%x: float32) -> float32 { exp(%x) } def @main(%x: float32) -> float32 { @f(@f(%x)) }")
    assert_structural_equal(first_order(mod), mod)


def test_the_module_is_given_what_was_made() -> None:
    mod = parsed("""def @call(%f: fn (float32) -> float32) -> float32 { %f(1f) } def @g(%x: float32) -> float32 { exp(%x) }
        def @main() -> float32 { @call(@g) }""")
    mod["main"] = Defunctionalization(mod["main"], mod)
    assert {"call_1", "apply", "call", "main", "g"} == {v.name_hint for v in mod.functions}
    np.testing.assert_allclose(values(relay.transform.InferType()(mod)).numpy(), np.e, rtol=1e-6)


@pytest.mark.parametrize("text,kind,message", [
    ("def @main[A](%x: A) -> A { %x }", ArgumentError, "has type parameters"),
    ("def @main(%f: fn (float32) -> float32) -> float32 { %f(1f) }", ArgumentError, "takes and gives no functions"),
    ("type Box { Put(fn (float32) -> float32), }\ndef @main(%x: float32) -> float32 { match (Put(fn (%y: float32) { %y })) { Put(%f) => %f(%x), } }",
     UnsupportedOpError, "Put has a field that is a function"),
    ("def @main(%x: float32) -> float32 { let %id = fn [A](%y: A) -> A { %y }; %id(%x) }", UnsupportedOpError, "give it one type"),
    (LIST + "def @deep[A](%f: fn (A) -> A, %x: A, %n: int32) -> int32 { @deep(fn (%l: List[A]) -> List[A] { %l }, Cons(%x, Nil), %n) }\n"
     "def @main(%n: int32) -> int32 { @deep(fn (%i: int32) -> int32 { %i }, %n, %n) }", UnsupportedOpError, "used at more than 128 types"),
])
def test_what_is_refused(text: str, kind: type, message: str) -> None:
    mod = parsed(text)
    with pytest.raises(kind, match=message):
        defunctionalize(mod["main"], mod)


@pytest.mark.parametrize("count", [sys.getrecursionlimit() + 200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_depth(count: int) -> None:
    x = relay.var("x", shape=(), dtype="float32")
    body: Any = x
    for i in range(count):
        v = relay.var(f"v{i}", shape=(), dtype="float32")
        body = relay.Call(relay.Function([v], relay.add(v, body) if i % 2 else body), [x])  # literals inside literals
    f = relay.var("f", FuncType([x.type_annotation], x.type_annotation))
    chain: Any = x
    for _ in range(count):
        chain = relay.Call(f, [chain])
    mod = IRModule()
    mod["all"] = relay.Function([f, x], chain, x.type_annotation)
    mod["main"] = relay.Function([x], relay.add(body, relay.Call(mod.get_global_var("all"), [relay.Function([relay.var("y", shape=())], x), x])))
    mod = relay.transform.InferType()(mod)
    func, result = defunctionalize(mod["main"], mod)
    assert len(result.functions) > count and sum(isinstance(e, relay.Call) for e in exprs(result["all_1"])) == count
