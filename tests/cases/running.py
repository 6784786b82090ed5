"""How the cases run programs: by the interpreter with numpy rules, compiled one operator at a time, and by the graph executor."""
from __future__ import annotations

from typing import Any

import numpy as np

import anchorleg as al
from anchorleg import relay
from anchorleg.contrib import graph_executor
from anchorleg.ir import IRModule
from anchorleg.ir.transform import PassContext, get_pass


def function(body: Any, *params: Any) -> Any:
    """A function of the parameters (default: the free variables)."""
    return relay.Function(list(params) or relay.analysis.free_vars(body), body)


def infer(expr: Any) -> Any:
    """The type of an expression."""
    return get_pass("InferType")(IRModule.from_expr(expr))["main"].checked_type.ret_type


def plain(value: Any) -> Any:
    """A result as numpy arrays in tuples."""
    if hasattr(value, "numpy"):
        return value.numpy()
    return tuple(plain(v) for v in value)


def interpreted(func: Any, *args: Any, target: Any = "numpy") -> Any:
    """The result by the interpreter."""
    return plain(relay.create_executor("debug", target=target).evaluate(func)(*args))


def built(func: Any, *args: Any, level: int = 3) -> list[np.ndarray]:
    """The flat results of the graph executor at an optimisation level."""
    with PassContext(opt_level=level):
        lib = relay.build(func if isinstance(func, IRModule) else IRModule.from_expr(func), "llvm")
    module = graph_executor.GraphModule(lib["default"](al.cpu()))
    for index, arg in enumerate(args):
        module.set_input(index, arg)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def everywhere(func: Any, *args: Any, wanted: Any, levels: Any = range(5), rtol: float = 1e-5) -> None:
    """The same result from all of them."""
    np.testing.assert_allclose(interpreted(func, *args), wanted, rtol=rtol, atol=1e-6)
    np.testing.assert_allclose(interpreted(func, *args, target="llvm"), wanted, rtol=rtol, atol=1e-6)
    for level in levels:
        (got,) = built(func, *args, level=level)
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-6, err_msg=f"level {level}")
        assert got.dtype == np.asarray(wanted).dtype and got.shape == np.asarray(wanted).shape
