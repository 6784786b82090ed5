"""One table row per case of an operator: how to call it, on what, and what another implementation says."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.relay.op.registry import evaluate


class Case(NamedTuple):
    """``build(*vars)`` makes the expression, ``ref(*arrays)`` the expected result (None: only the compiled form is compared)."""

    name: str
    build: Callable[..., Any]
    args: list[np.ndarray]
    ref: Callable[..., Any] | None = None
    tol: float = 1e-5


def rand(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Reproducible random data: normal for floats, the full range for small integers."""
    gen = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return gen.integers(max(info.min, -1000), min(info.max, 1000), shape, endpoint=True).astype(dtype)
    return gen.standard_normal(shape).astype(dtype)


def module_of(case: Case) -> IRModule:
    """The typed module of a case; parameters are named a0, a1 …"""
    params = [relay.var(f"a{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(case.args)]
    body = case.build(*params)
    body = body.astuple() if isinstance(body, relay.TupleWrapper) else body
    return relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))


def interpret(expr: Any, env: dict[Any, np.ndarray]) -> Any:
    """The value of a small expression by the operators' numpy rules."""
    if expr in env:
        return env[expr]
    if isinstance(expr, relay.Constant):
        return expr.data.numpy()
    if isinstance(expr, relay.TupleGetItem):
        return interpret(expr.tuple_value, env)[expr.index]
    if isinstance(expr, relay.Tuple):
        return tuple(interpret(f, env) for f in expr.fields)
    return evaluate(expr.op, expr.attrs, [interpret(a, env) for a in expr.args], expr.checked_type)


def by_numpy(case: Case) -> Any:
    """The result of a case by the numpy rules, checked against the inferred type."""
    func = module_of(case)["main"]
    out = interpret(func.body, dict(zip(func.params, case.args)))
    if isinstance(out, np.ndarray):
        assert out.shape == func.body.checked_type.concrete_shape
    return out


def infer(build: Callable[..., Any], *types: Any) -> Any:
    """The result type of ``build`` on parameters of these types (shapes, or (shape, dtype), or None: to be inferred)."""
    params = []
    for i, t in enumerate(types):
        shape, dtype = t if t is not None and len(t) == 2 and isinstance(t[1], str) else (t, "float32")
        params.append(relay.Var(f"a{i}") if t is None else relay.var(f"a{i}", shape=shape, dtype=dtype))
    body = build(*params)
    body = body.astuple() if isinstance(body, relay.TupleWrapper) else body
    func = relay.transform.InferType()(IRModule.from_expr(relay.Function(params, body)))["main"]
    return func.body.checked_type, [p.checked_type for p in func.params]


def ort(op: str, opset: int = 17, outputs: int = 1, **attrs: Any) -> Callable[..., Any]:
    """ONNX Runtime's result for one node."""
    def run(*arrays: np.ndarray) -> Any:
        import onnxruntime
        from onnx import helper

        names = [f"i{k}" for k in range(len(arrays))]
        outs = [f"o{k}" for k in range(outputs)]
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in zip(names, arrays)]
        node = helper.make_node(op, names, outs, **attrs)
        graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(o) for o in outs])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found = session.run(None, dict(zip(names, arrays)))
        return found[0] if outputs == 1 else tuple(found)

    return run


def assert_close(got: Any, want: Any, tol: float) -> None:
    """Equal shapes and values, relative to the largest magnitude."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert_close(g, w, tol)
        return
    want = np.asarray(want)
    assert got.shape == want.shape
    if want.dtype.kind in "iub" and got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    finite = np.abs(want[np.isfinite(want)].astype(np.float64))
    scale = finite.max() if finite.size else 1.0
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tol, atol=tol * max(scale, 1e-6))
