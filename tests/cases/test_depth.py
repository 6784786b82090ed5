"""Long and deeply nested programs: 20,000 operators pass through everything at Python's default recursion limit.

The quick tests are a few thousand deep, several times that limit, so that any recursion over the program fails them.
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from onnx import helper, numpy_helper

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir import IRModule, structural_equal, structural_hash
from anchorleg.ir.serialize import load_json, save_json
from anchorleg.ir.transform import _PASSES, PassContext, get_pass
from anchorleg.relay.transform import load_all
from anchorleg.runtime.module import load_module
from anchorleg.support.errors import UnsupportedOpError

QUICK, FULL = 3_000, 20_000
X = np.array([-0.5, 0.25, 1], "float32")
Maker = Callable[[int], IRModule]

load_all()


@pytest.fixture(autouse=True)
def _default_limit() -> Any:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


def onnx_chain(n: int) -> IRModule:
    """A model of n element-wise nodes."""
    ops = ("Add", "Tanh", "Relu", "Mul", "Neg", "Sigmoid")
    nodes = [helper.make_node(op, [f"v{i}"] + (["c"] if op in ("Add", "Mul") else []), [f"v{i + 1}"])
             for i, op in ((i, ops[i % len(ops)]) for i in range(n))]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("v0", 1, [3])], [value(f"v{n}", 1, [3])], [numpy_helper.from_array(np.full(3, 1.1, "float32"), "c")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return relay.frontend.from_onnx(model, freeze_params=True)[0]


def _nested(step: Callable[[Any, Any, int], Any]) -> Maker:
    def make(n: int) -> IRModule:
        x = relay.var("x", shape=(3,), dtype="float32")
        expr: Any = x
        for i in range(n):
            expr = step(x, expr, i)
        return IRModule.from_expr(relay.Function([x], expr))

    return make


def _let_in_value(x: Any, expr: Any, i: int) -> Any:
    v = relay.var(f"v{i}")
    return relay.Let(v, expr, relay.tanh(v))


def _function(x: Any, expr: Any, i: int) -> Any:
    v = relay.var("v", shape=(3,), dtype="float32")
    return relay.Call(relay.Function([v], relay.tanh(v)), [expr])


def let_chain(n: int) -> IRModule:
    """``let v0 = tanh(x); let v1 = tanh(v0); …``"""
    x = relay.var("x", shape=(3,), dtype="float32")
    names = [x, *(relay.var(f"v{i}") for i in range(n))]
    body: Any = names[-1]
    for i in reversed(range(n)):
        body = relay.Let(names[i + 1], relay.tanh(names[i]), body)
    return IRModule.from_expr(relay.Function([x], body))


STRAIGHT: dict[str, Maker] = {
    "onnx_chain": onnx_chain,
    "nested_left": _nested(lambda x, e, i: relay.add(relay.tanh(e), x)),
    "nested_right": _nested(lambda x, e, i: relay.subtract(x, e) if i % 2 else relay.add(x, relay.tanh(e))),
    "nested_tuples": _nested(lambda x, e, i: relay.TupleGetItem(relay.Tuple([relay.tanh(e), x]), 0)),
    "let_chain": let_chain,
    "let_in_value": _nested(_let_in_value),
    "functions_called": _nested(_function),
}
BRANCHING: dict[str, Maker] = {
    "nested_ifs": _nested(lambda x, e, i: relay.If(relay.const(True), relay.tanh(e), x)),
    "nested_closures": _nested(lambda x, e, i: relay.Function([], e) if not isinstance(e, relay.Function) else relay.Call(e, [])),
    "nested_refs": _nested(lambda x, e, i: relay.RefRead(relay.RefCreate(relay.tanh(e)))),
}
EVERY = {**STRAIGHT, **BRANCHING}


def texts_and_hashes(mod: IRModule) -> None:
    text = mod.astext()
    back = get_pass("InferType")(relay.fromtext(text))
    assert structural_equal(mod, back)
    assert structural_hash(mod) == structural_hash(back)
    assert structural_equal(mod, load_json(save_json(mod)))


OF_LOWERED = ("tir.usmp.", "tir.transform.UnifiedStaticMemoryPlanner")  # these plan lowered modules only
REFUSES_BRANCHES = {"AnnotateUsedMemory", "FirstOrderGradient"}  # with a message, whatever the depth


def every_pass(mod: IRModule, branches: bool = False) -> None:
    with_spans = get_pass("AnnotateSpans")(mod)
    for name in sorted(n for n in _PASSES if not n.startswith(OF_LOWERED)):
        try:
            get_pass(name)(with_spans if name == "SpanCheck" else mod)  # a check that refuses what has no spans
        except UnsupportedOpError:
            if not branches or name not in REFUSES_BRANCHES:
                raise


def build_and_run(mod: IRModule, folder: Path) -> None:
    results = []
    for level in (0, 3):
        with PassContext(opt_level=level):
            factory = relay.build(mod, "llvm")
        runner = GraphModule(factory["default"]())
        name = next(iter(runner.get_input_info()[0]))
        runner.run(**{name: X})
        results.append(runner.get_output(0).numpy())
    factory.export_library(folder / "deep.anchor")
    again = GraphModule(load_module(folder / "deep.anchor")["default"]())
    again.run(**{name: X})
    results.append(again.get_output(0).numpy())
    assert np.isfinite(results[0]).all()
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)
    np.testing.assert_array_equal(results[2], results[1])


def _typed(maker: Maker, n: int) -> IRModule:
    return get_pass("InferType")(maker(n))


@pytest.mark.parametrize("name", EVERY)
def test_text_json_hash(name: str) -> None:
    texts_and_hashes(_typed(EVERY[name], QUICK))


@pytest.mark.parametrize("name", EVERY)
def test_every_pass(name: str) -> None:
    every_pass(_typed(EVERY[name], QUICK), branches=name in BRANCHING)


@pytest.mark.parametrize("name", STRAIGHT)
def test_build_and_run(name: str, tmp_path: Path) -> None:
    build_and_run(STRAIGHT[name](QUICK), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_full_depth(name: str, tmp_path: Path) -> None:
    mod = _typed(EVERY[name], FULL)
    texts_and_hashes(mod)
    every_pass(mod, branches=name in BRANCHING)
    if name in STRAIGHT:
        build_and_run(mod, tmp_path)


def test_shared_results_take_linear_time() -> None:
    y = x = relay.var("x", shape=(), dtype="float32")
    for _ in range(60):
        y = relay.add(y, y)
    mod = _typed(lambda n: IRModule.from_expr(relay.Function([x], y)), 0)
    texts_and_hashes(mod)
    every_pass(mod)
    runner = GraphModule(relay.build(mod, "llvm")["default"]())
    runner.run(x=np.float32(1))
    assert runner.get_output(0).numpy() == 2.0 ** 60


def test_onnx_values_are_those_of_the_chain() -> None:
    n = 600
    runner = GraphModule(relay.build(onnx_chain(n), "llvm")["default"]())
    runner.run(v0=X)
    steps = [lambda v: v + np.float32(1.1), np.tanh, lambda v: np.maximum(v, 0), lambda v: v * np.float32(1.1), np.negative, lambda v: 1 / (1 + np.exp(-v))]
    want = X
    for i in range(n):
        want = steps[i % 6](want)
    np.testing.assert_allclose(runner.get_output(0).numpy(), want, rtol=1e-5)


