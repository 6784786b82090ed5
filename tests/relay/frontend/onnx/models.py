"""Small ONNX models for tests, and running them here and in ONNX Runtime."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

import anchorleg.relay.op  # noqa: F401  (declares the operators)
from anchorleg.relay.backend.numpy_interpreter import evaluate
from anchorleg.relay.frontend import from_onnx

Arrays = "dict[str, np.ndarray]"


def info(name: str, array: np.ndarray, shape: Any = None) -> Any:
    """A ValueInfoProto for an input like ``array``; ``shape`` may hold names for sizes."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape if shape is None else shape)


def model(nodes: Sequence[Any], inputs: dict[str, np.ndarray], outputs: Sequence[str], opset: int = 17,
          constants: dict[str, np.ndarray] | None = None, shapes: dict[str, Any] | None = None, domains: Sequence[tuple[str, int]] = (),
          functions: Sequence[Any] = ()) -> Any:
    """A model of some nodes; outputs have no declared type."""
    graph = helper.make_graph(
        list(nodes), "g", [info(n, a, (shapes or {}).get(n)) for n, a in inputs.items()],
        [onnx.ValueInfoProto(name=o) for o in outputs],
        [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()])
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def single(op: str, inputs: Sequence[np.ndarray | None], opset: int = 17, fixed: Sequence[int] = (), outputs: int = 1, domain: str = "",
           **attributes: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """A model of one node and its input values; inputs at ``fixed`` places are constants, None stands for an absent one."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name="node", domain=domain, **attributes)
    fed = {n: x for i, (n, x) in enumerate(zip(names, inputs)) if x is not None and i not in fixed}
    kept = {n: x for i, (n, x) in enumerate(zip(names, inputs)) if x is not None and i in fixed}
    return model([node], fed, [f"y{i}" for i in range(outputs)], opset, kept, domains=[(domain, 1)] if domain else ()), fed


def ours(proto: Any, feed: dict[str, np.ndarray], **options: Any) -> list[np.ndarray]:
    """The results of the imported model, by the operators' numpy rules."""
    mod, params = from_onnx(proto, **options)
    values = {**feed, **params}
    found = evaluate(mod, [values[p.name_hint] for p in mod["main"].params])
    return list(found) if isinstance(found, tuple) else [found]


def runtime(proto: Any, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of ONNX Runtime (types of the outputs are inferred first, as it needs them)."""
    import onnxruntime

    typed = onnx.shape_inference.infer_shapes(proto)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def assert_same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], tolerance: float = 1e-5) -> None:
    """Equal shapes, dtypes and (up to a tolerance relative to the largest value) values."""
    assert len(got) == len(want)
    for g, w in zip(got, want):
        g = np.asarray(g)
        assert g.shape == w.shape and g.dtype == w.dtype, (g.shape, w.shape, g.dtype, w.dtype)
        if w.dtype.kind in "fV":
            scale = np.abs(w[np.isfinite(w)]).max(initial=1e-6)
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * float(scale))
        else:
            np.testing.assert_array_equal(g, w)


def check(proto: Any, feed: dict[str, np.ndarray], tolerance: float = 1e-5, **options: Any) -> list[np.ndarray]:
    """Compares the import with ONNX Runtime and gives our results."""
    got = ours(proto, feed, **options)
    assert_same(got, runtime(proto, feed), tolerance)
    return got


def check_many(proto: Any, feeds: Sequence[dict[str, np.ndarray]], tolerance: float = 1e-5, machine: bool = True, **options: Any) -> None:
    """Imports once and compares results for several inputs with ONNX Runtime: by the numpy rules, and in the virtual machine."""
    mod, params = from_onnx(proto, **options)
    names = [p.name_hint for p in mod["main"].params]
    run = _machine(mod, params) if machine else None
    for feed in feeds:
        want, values = runtime(proto, feed), {**feed, **params}
        found = evaluate(mod, [values[n] for n in names])
        assert_same(list(found) if isinstance(found, tuple) else [found], want, tolerance)
        if run is not None:
            assert_same(run([values[n] for n in names]), want, tolerance)


def _machine(mod: Any, params: Any) -> Any:
    from anchorleg import relay
    from anchorleg.runtime import cpu
    from anchorleg.runtime.vm import VirtualMachine

    executable = relay.vm.compile(mod, "llvm")
    machine = VirtualMachine(executable, cpu(0))

    def run(values: Sequence[Any]) -> list[np.ndarray]:
        found = machine.invoke("main", *values)
        return [found.numpy()] if hasattr(found, "numpy") else [f.numpy() for f in found]

    return run
