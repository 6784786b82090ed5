"""Operators whose sizes, counts and widths are inputs, or come from unknown sizes, against ONNX Runtime: by the numpy rules, and compiled."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import pytest
from onnx import helper

from anchorleg import cpu, relay
from anchorleg.relay.frontend import from_onnx
from anchorleg.runtime.vm import VirtualMachine

from .models import check_many, model

pytest.importorskip("onnxruntime")
_rng = np.random.default_rng(23)


def f(*shape: int) -> np.ndarray:
    return _rng.standard_normal(shape).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def single(op: str, feeds: Sequence[dict[str, np.ndarray]], shapes: dict[str, Any], names: Sequence[str] = (), outputs: int = 1, opset: int = 18,
           constants: dict[str, np.ndarray] | None = None, **attributes: Any) -> None:
    """Checks one node whose inputs are the first feed's, in order (or ``names``)."""
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, list(names) or list(feeds[0]), results, **attributes)
    check_many(model([node], feeds[0], results, opset, constants, shapes), feeds)


@pytest.mark.parametrize("axis", [0, 1])
def test_as_many_of_the_largest_as_asked_for(axis: int) -> None:
    feeds = [{"x": f(*s), "k": i64(k)} for s, k in (((3, 4), 2), ((1, 1), 1), ((5, 9), 5), ((2, 4), 0))]
    single("TopK", feeds, {"x": ["p", "q"]}, outputs=2, axis=axis)


def test_no_box_is_kept_where_none_is_asked_for() -> None:
    def feed(count: int, most: int) -> dict[str, np.ndarray]:
        corner = _rng.random((1, count, 2)) * 10
        boxes = np.concatenate([corner, corner + _rng.random((1, count, 2)) * 5], 2).astype(np.float32)
        return {"boxes": boxes, "scores": _rng.random((1, 2, count)).astype(np.float32), "most": i64(most)}

    single("NonMaxSuppression", [feed(8, 3), feed(6, 0), feed(1, 9)], {"boxes": [1, "k", 4], "scores": [1, 2, "k"]})


@pytest.mark.parametrize("rank", [3, 4])
def test_rows_of_unknown_length_by_a_matrix_of_unknown_sizes(rank: int) -> None:
    lead = [f"d{i}" for i in range(rank - 2)]
    feeds = [{"x": f(*[b] * (rank - 2), m, k), "y": f(k, c)} for b, m, k, c in ((2, 3, 4, 5), (1, 1, 1, 1), (3, 1, 17, 9))]
    single("MatMul", feeds, {"x": [*lead, "m", "k"], "y": ["k", "c"]})


@pytest.mark.parametrize("op, inputs", [
    ("GatherElements", {"x": (3, 4), "i": (1, 4)}), ("GatherND", {"x": (3, 4), "i": (2, 1)}), ("ScatterElements", {"x": (3, 4), "i": (1, 4), "u": (1, 4)}),
    ("ScatterND", {"x": (3, 4), "i": (2, 1), "u": (2, 4)})])
def test_no_index_reaches_outside_of_the_data(op: str, inputs: dict[str, tuple[int, ...]]) -> None:
    """Indices too far on either side name the nearest element, whatever they are: nothing else in memory is read or written."""
    feed = {name: f(*shape) if name != "i" else np.zeros(shape, np.int64) for name, shape in inputs.items()}
    proto = model([helper.make_node(op, list(inputs), ["y"])], feed, ["y"], 18, shapes={"x": ["p", "q"]})
    mod, params = from_onnx(proto)
    run = VirtualMachine(relay.vm.compile(mod, "llvm", params=params), cpu()).invoke
    for far, near in ((10**9, 2), (2**62, 2), (-(10**9), 0), (-(2**62), 0)):
        feed["i"].reshape(-1)[-1] = far
        got = run("main", **feed).numpy()
        feed["i"].reshape(-1)[-1] = near
        np.testing.assert_array_equal(got, run("main", **feed).numpy())
