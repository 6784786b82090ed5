"""Planes of unknown sizes resized by kernels, and to sizes that are inputs, against the numpy rules."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import IRModule, relay
from anchorleg.relay.backend.numpy_interpreter import evaluate
from anchorleg.relay.op.dyn.image import resize2d
from anchorleg.runtime import cpu
from anchorleg.runtime.vm import VirtualMachine

RNG = np.random.default_rng(11)
SIZES = ((5, 7, 8, 10), (4, 4, 4, 4), (1, 1, 3, 3), (6, 9, 1, 1), (9, 8, 4, 13), (33, 1, 17, 40))  # the plane before and after
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")


def machine(mod: IRModule, host: bool = False) -> VirtualMachine:
    """A machine for a module that needs kernels only (or, with ``host``, the numpy rules)."""
    made = relay.vm.compile(mod, "llvm")
    assert any(e.kind == "host" for e in made.packed) == host
    return VirtualMachine(made, cpu(0))


def check(mod: IRModule, runs: VirtualMachine, *args: np.ndarray) -> None:
    want, got = evaluate(mod, list(args)), runs.invoke("main", *args).numpy()
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def to_sizes(layout: str = "NCHW", dtype: str = "float32", **options: Any) -> IRModule:
    dims = {"N": relay.Any(), "C": 3, "H": relay.Any(), "W": relay.Any()}
    x, size = relay.var("x", shape=[dims[a] for a in layout], dtype=dtype), relay.var("size", shape=(2,), dtype="int64")
    return IRModule.from_expr(relay.Function([x, size], resize2d(x, size, relay.const(np.zeros(4, "float32")), layout=layout, **options)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method, rounding", [("linear", ""), ("cubic", ""), ("nearest_neighbor", "floor"), ("nearest_neighbor", "ceil"),
                                              ("nearest_neighbor", "round_prefer_floor"), ("nearest_neighbor", "round_prefer_ceil")])
def test_planes_of_unknown_sizes_resized_to_sizes_that_are_an_input(method: str, rounding: str, mode: str) -> None:
    mod = to_sizes(method=method, coordinate_transformation_mode=mode, rounding_method=rounding)
    runs = machine(mod)
    for h, w, rows, columns in SIZES:
        check(mod, runs, RNG.standard_normal((2, 3, h, w), np.float32), np.array([rows, columns]))


@pytest.mark.parametrize("options", [{"layout": "NHWC"}, {"dtype": "float64"}, {"method": "cubic", "cubic_exclude": 1}], ids=["layout", "dtype", "exclude"])
def test_other_layouts_and_types_of_planes_of_unknown_sizes(options: dict[str, Any]) -> None:
    mod = to_sizes(**options)
    runs = machine(mod)
    for h, w, rows, columns in SIZES:
        shape = (1, h, w, 3) if options.get("layout") == "NHWC" else (1, 3, h, w)
        check(mod, runs, RNG.standard_normal(shape).astype(options.get("dtype", "float32")), np.array([rows, columns]))


@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unknown_sizes_resized_to_known_ones(rank: int, method: str) -> None:
    x = relay.var("x", shape=(2, *[relay.Any()] * (rank + 1)))
    body = getattr(relay.image, f"resize{rank}d")(x, (6, 4, 5)[:rank], method=method)
    mod = IRModule.from_expr(relay.Function([x], body))
    runs = machine(mod)
    for shape in ((2, 3, 4, 9, 5), (2, 1, 1, 1, 1), (2, 2, 6, 4, 12)):
        check(mod, runs, RNG.standard_normal(shape[:rank + 2], np.float32))


def test_crops_of_planes_of_unknown_sizes_go_by_the_rules() -> None:
    x = relay.var("x", shape=(1, 2, relay.Any(), relay.Any()))
    mod = IRModule.from_expr(relay.Function([x], relay.image.resize2d(x, (3, 4), (0.1, 0.2, 0.9, 1.2), coordinate_transformation_mode="tf_crop_and_resize",
                                                                      extrapolation_value=5.0)))
    check(mod, machine(mod, host=True), RNG.standard_normal((1, 2, 5, 6), np.float32))
