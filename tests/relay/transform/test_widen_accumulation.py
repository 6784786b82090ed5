"""Products of half precision are summed in float32."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir.transform import PassContext

from .passes import check, of, unchanged

DENSE = "def @main(%x: Tensor[(2, 900), float16], %w: Tensor[(3, 900), float16]) { {} }"


def test_dense() -> None:
    check("WidenAccumulation", DENSE.replace("{}", "nn.dense(%x, %w, units=3)"),
          DENSE.replace("{}", '%0 = nn.dense(%x, %w, units=3, out_dtype="float32"); cast(%0, dtype="float16")'))


@pytest.mark.parametrize("body", ['nn.dense(%x, %w, units=3, out_dtype="float32")', "add(%x, %x)"])
def test_left_alone(body: str) -> None:
    unchanged("WidenAccumulation", DENSE.replace("{}", body))


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", ["dense", "batch_matmul", "conv2d", "conv1d", "conv2d_transpose"])
def test_compiled(name: str, level: int) -> None:
    rng = np.random.default_rng(0)
    build = {"dense": (relay.nn.dense, (2, 900), (3, 900)), "batch_matmul": (relay.nn.batch_matmul, (2, 3, 900), (2, 5, 900)),
             "conv2d": (relay.nn.conv2d, (1, 100, 5, 5), (4, 100, 3, 3)), "conv1d": (relay.nn.conv1d, (1, 100, 9), (4, 100, 3)),
             "conv2d_transpose": (relay.nn.conv2d_transpose, (1, 200, 3, 3), (200, 4, 3, 3))}
    make, *shapes = build[name]
    values = [(rng.random(s) + 1).astype("float16") for s in shapes]
    args = [relay.var(n, shape=s, dtype="float16") for n, s in zip("xw", shapes)]
    exact = {"dense": lambda x, w: x @ w.T, "batch_matmul": lambda x, w: x @ w.transpose(0, 2, 1)}
    with PassContext(opt_level=level):
        runner = GraphModule(relay.build(of(relay.Function(args, make(*args))), "llvm")["default"]())
    runner.run(**dict(zip("xw", values)))
    got = runner.get_output(0).numpy()
    assert got.dtype == np.float16
    if name in exact:
        want = exact[name](*(v.astype("float64") for v in values))
    else:
        wide = [relay.var(n, shape=s, dtype="float64") for n, s in zip("xw", shapes)]
        mod = of(relay.Function(wide, make(*wide)))
        want = relay.create_executor("debug", mod=mod).evaluate()(*(v.astype("float64") for v in values)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-3)
