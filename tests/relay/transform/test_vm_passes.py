"""The passes before the virtual machine's code generation: before and after."""
from __future__ import annotations

import pytest

from anchorleg import relay
from anchorleg.ir.expr import GlobalVar, RelayExpr
from anchorleg.ir.module import IRModule
from anchorleg.ir.op import Op
from anchorleg.ir.structural import structural_equal
from anchorleg.ir.transform import Sequential
from anchorleg.relay.analysis.variables import expr_children, exprs
from anchorleg.relay.transform.common import descends

transform = relay.transform


def same(before: str, after: str, *passes) -> bool:
    return structural_equal(Sequential(list(passes))(relay.parse(before)), transform.InferType()(relay.parse(after)), map_free_vars=True)


def test_lifetimes_end_after_the_last_use():
    before = """#[version = "0.0.5"]
    def @main(%x: int) { let %y = cast(%x, dtype="bool"); let %z = if (%y) { let %v = %x + %x; let %w = %v * 2; %w } else { %x }; %z }"""
    after = """#[version = "0.0.5"]
    def @main(%x: int) { let %y = cast(%x, dtype="bool");
      let %z = if (%y) { let %v = %x + %x; let %_0 = memory.kill(%x); let %w = %v * 2; let %_1 = memory.kill(%v); %w } else { %x };
      let %_2 = memory.kill(%y); %z }"""
    assert same(before, after, transform.InferType(), transform.ManifestLifetimes())


def test_local_loops_become_global_functions():
    before = relay.parse("""#[version = "0.0.5"]
    def @main(%n: int, %x: int) -> int {
      let %loop = fn (%i: int) -> int { if (less(%i, %n)) { %loop(add(%i, 1)) } else { %x } };
      %loop(0) }""")
    lifted = Sequential([transform.InferType(), transform.LambdaLift()])(before)
    assert sorted(v.name_hint for v in lifted.functions) == ["main", "main_loop"]
    assert [p.name_hint for p in lifted["main_loop"].params] == ["i", "n", "x"]
    assert "fn (" not in lifted["main_loop"].body.astext(show_meta_data=False)
    assert transform.LambdaLift()(lifted) is lifted


def test_escaping_functions_become_closures():
    before = relay.parse("""#[version = "0.0.5"]
    def @main(%x: float32) { let %f = fn (%y: float32) { add(%x, %y) }; (%f, %f) }""")
    lifted = Sequential([transform.InferType(), transform.LambdaLift()])(before)
    made = lifted["main_f"]
    assert made.get_attr("Closure") and [p.name_hint for p in made.params] == ["x"]


def prepared(func):
    mod = IRModule.from_expr(func)
    return Sequential([transform.InferType(), transform.FuseOps(), transform.ToANormalForm(), transform.InferType(), transform.ManifestAlloc()])(mod)


def test_known_sizes_need_no_shape_function():
    x = relay.var("x", shape=(3, 4))
    text = prepared(relay.Function([x], relay.exp(x))).astext(show_meta_data=False)
    assert text.count("memory.alloc_storage") == text.count("memory.alloc_tensor") == text.count("vm.invoke_tvm_op") == 1
    assert "shape_func" not in text


def test_one_shape_function_serves_equal_shapes():
    x = relay.var("x", shape=(relay.Any(), 4))
    first = relay.nn.softmax(relay.nn.softmax(x))
    text = prepared(relay.Function([x], relay.nn.dense(first, relay.const([[1.0] * 4] * 4)))).astext(show_meta_data=False)
    assert text.count("vm.invoke_tvm_op") == 3 and text.count("vm.shape_func") <= 2


def test_reshapes_are_views():
    x = relay.var("x", shape=(relay.Any(), 16))
    text = prepared(relay.Function([x], relay.reshape(x, (-1, 4)))).astext(show_meta_data=False)
    assert "vm.reshape_tensor" in text and "invoke_tvm_op" not in text


def _untyped_parts(mod):
    for func in mod.functions.values():
        for node in exprs(func):
            if isinstance(node, RelayExpr) and node._checked_type is not None and descends(node):
                yield from (type(node).__name__ for c in expr_children(node) if not isinstance(c, (Op, GlobalVar)) and c._checked_type is None)


@pytest.mark.parametrize("name", ["FuseOps", "ToANormalForm", "LambdaLift"])
def test_what_keeps_its_type_has_typed_parts(name):
    """Inference does not look into typed expressions: an untyped part would stay so."""
    x, r, f, y = (relay.Var(n, t) for n, t in (("x", relay.TensorType((2,), "float32")), ("r", None), ("f", None), ("y", relay.TensorType((2,), "float32"))))
    closure = relay.Function([y], relay.Tuple([relay.RefRead(r) + y, relay.RefCreate(relay.zeros_like(x))]))
    body = relay.Let(r, relay.RefCreate(x), relay.Let(f, closure, relay.TupleGetItem(relay.Call(f, [x]), 0)))
    mod = transform.InferType()(IRModule.from_expr(relay.Function([x], relay.Tuple([body, relay.RefCreate(closure)]))))
    assert not list(_untyped_parts(getattr(transform, name)()(mod)))
