"""LowerTE: primitive functions become loop programs of the module."""
from __future__ import annotations

import pytest

from anchorleg import relay, tir
from anchorleg.ir import IRModule
from anchorleg.relay.backend.lower_te import LowerTE
from anchorleg.support.errors import BuildError

HEAD = '#[version = "0.0.5"]\n'
TENSOR = "Tensor[(5, 7), float32]"


def _lower(text, name="mod"):
    return LowerTE(name)(relay.parse(HEAD + text))


def test_a_primitive_function():
    mod = _lower(f"""
def @main(%a: {TENSOR}) -> {TENSOR} {{
  %0 = fn (%x: {TENSOR}, %y: {TENSOR}, Primitive=1) -> {TENSOR} {{ add(%x, %y) }};
  %1 = %0(%a, %a);
  %0(%1, %a)
}}""")
    call = mod["main"].body
    assert call.op.name == "call_lowered" and call.args[0].name_hint == "mod_fused_add"
    assert call.attrs.metadata["relay_attrs"].Primitive == 1
    assert call.attrs.metadata["all_prim_fn_vars"] == [call.args[0]]
    inner = call.args[1].fields[0]
    assert inner.op.name == "call_lowered" and inner.args[0] is call.args[0], "one function for both calls"
    assert isinstance(mod["mod_fused_add"], tir.PrimFunc) and len(mod.functions) == 2
    assert relay.transform.InferType()(mod)["main"].checked_type.ret_type == relay.TensorType((5, 7), "float32")


def test_functions_of_other_compilers_and_extern_ones():
    mod = _lower(f"""
def @main(%a: {TENSOR}) -> {TENSOR} {{
  %0 = fn (%x: {TENSOR}, Primitive=1, Compiler="other", global_symbol="theirs") -> {TENSOR} {{ exp(%x) }};
  @given(%0(%a))
}}
def @given(%x: {TENSOR}, Extern=1) -> {TENSOR} {{ tanh(%x) }}""")
    outer = mod["main"].body
    assert outer.args[0].name_hint == "given" and outer.attrs.metadata["all_prim_fn_vars"] == []
    inner = outer.args[1].fields[0]
    assert inner.args[0].name_hint == "theirs" and inner.attrs.metadata["relay_attrs"].Compiler == "other"
    assert mod["theirs"].attrs["Extern"] == 1 and mod["theirs"].get_attr("Compiler") is None


def test_a_function_for_another_compiler_needs_a_name():
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], relay.exp(x)).with_attr("Primitive", 1).with_attr("Compiler", "other")
    y = relay.var("y", shape=(2,))
    with pytest.raises(BuildError, match="global_symbol"):
        LowerTE()(IRModule.from_expr(relay.Function([y], relay.Call(func, [y]))))


def test_what_is_lowered_is_told_and_the_input_stays():
    seen = []
    mod = relay.parse(HEAD + f"def @main(%a: {TENSOR}) -> {TENSOR} {{ %0 = fn (%x: {TENSOR}, Primitive=1) -> {TENSOR} {{ exp(%x) }}; %0(%a) }}")
    before = mod.astext()
    LowerTE("m", "llvm", seen.append)(mod)
    assert len(seen) == 1 and mod.astext() == before
