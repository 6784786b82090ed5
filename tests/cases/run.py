"""Running small programs and models through the graph executor, for the tests of known kinds of fault."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend.numpy_interpreter import evaluate

LEVELS = (0, 1, 2, 3, 4)


def module(params: Sequence[Any], body: Any) -> IRModule:
    """A module whose main is ``fn(params) body``."""
    return IRModule.from_expr(relay.Function(list(params), body))


def graph(mod: IRModule, *args: Any, level: int = 3) -> list[np.ndarray]:
    """The flat results of the graph executor."""
    with PassContext(opt_level=level):
        runner = GraphModule(relay.build(mod, "llvm")["default"]())
    names = [p.name_hint for p in mod["main"].params]
    runner.run(**{n: a for n, a in zip(names, args) if n in runner.get_input_info()[0]})
    return [runner.get_output(i).numpy() for i in range(runner.get_num_outputs())]


def by_numpy(mod: IRModule, *args: Any) -> list[np.ndarray]:
    """The flat results of the operators' numpy rules."""
    stack, flat = [evaluate(relay.transform.InferType()(mod), list(args))], []
    while stack:
        value = stack.pop()
        if isinstance(value, (tuple, list)):
            stack.extend(reversed(value))
        else:
            flat.append(np.asarray(value))
    return flat


def everywhere(mod: IRModule, *args: Any, want: Any, rtol: float = 1e-5, levels: Sequence[int] = LEVELS) -> None:
    """The numpy rules and the graph executor at every level give ``want`` (an array, or a list of them), dtypes included."""
    wanted = [np.asarray(w) for w in (want if isinstance(want, list) else [want])]
    for what, found in [("numpy", by_numpy(mod, *args)), *((f"level {n}", graph(mod, *args, level=n)) for n in levels)]:
        assert [(f.shape, f.dtype) for f in found] == [(w.shape, w.dtype) for w in wanted], what
        for f, w in zip(found, wanted):
            np.testing.assert_allclose(f, w, rtol=rtol, atol=rtol, err_msg=what)


def onnx_model(nodes: Sequence[Any], inputs: dict[str, np.ndarray], outputs: Sequence[str], constants: dict[str, np.ndarray] | None = None,
               opset: int = 17) -> onnx.ModelProto:
    """A model of some nodes, with inputs like the given arrays."""
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    inits = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    made = helper.make_graph(list(nodes), "g", infos, [onnx.ValueInfoProto(name=o) for o in outputs], inits)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def onnx_everywhere(nodes: Sequence[Any], inputs: dict[str, np.ndarray], want: Any, outputs: Sequence[str] = ("out",),
                    constants: dict[str, np.ndarray] | None = None, opset: int = 17, rtol: float = 1e-5) -> None:
    """The imported model gives ``want`` by the numpy rules and compiled at levels 0 and 3."""
    mod, _ = relay.frontend.from_onnx(onnx_model(nodes, inputs, outputs, constants, opset), freeze_params=True)
    everywhere(mod, *inputs.values(), want=want, rtol=rtol, levels=(0, 3))
