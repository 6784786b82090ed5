"""Sequences whose places, parts and lengths only a running model knows, against ONNX Runtime."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import pytest
from onnx import helper

from anchorleg import cpu, relay
from anchorleg.relay.frontend import from_onnx
from anchorleg.runtime.vm import VirtualMachine
from anchorleg.support.errors import AnchorlegError

from .models import check_many, model
from .test_dynamic_inputs import f, i64

pytest.importorskip("onnxruntime")
node = helper.make_node


def place(k: int) -> np.ndarray:
    return np.array(k, np.int64)


def split(feeds: Sequence[dict[str, np.ndarray]], axis: int) -> Any:
    nodes = [node("SplitToSequence", ["x", "sizes"], ["parts"], axis=axis), node("SequenceAt", ["parts", "k"], ["one"]),
             node("SequenceLength", ["parts"], ["count"]), node("ConcatFromSequence", ["parts"], ["whole"], axis=axis)]
    sizes = ["m"] if feeds[0]["sizes"].ndim else []
    return model(nodes, feeds[0], ["one", "count", "whole"], shapes={"x": ["p", "q"], "sizes": sizes})


@pytest.mark.parametrize("axis", [0, 1])
def test_split_into_parts_of_given_sizes(axis: int) -> None:
    feeds = [{"x": f(*((sum(s), 3) if axis == 0 else (3, sum(s)))), "sizes": i64(*s), "k": place(k)} for s, k in (((1, 2, 3), 1), ((4,), 0), ((2, 2), -1))]
    check_many(split(feeds, axis), feeds)


def test_split_into_parts_of_one_size() -> None:
    feeds = [{"x": f(2, q), "sizes": place(s), "k": place(k)} for q, s, k in ((7, 3, -1), (6, 3, 1), (5, 9, 0))]
    check_many(split(feeds, 1), feeds)


def test_parts_that_do_not_add_up_are_refused() -> None:
    feeds = [{"x": f(5, 3), "sizes": i64(2, 2), "k": place(0)}]
    mod, params = from_onnx(split(feeds, 0))
    machine = VirtualMachine(relay.vm.compile(mod, "llvm", params=params), cpu())
    with pytest.raises(AnchorlegError, match="number of elements"):
        machine.invoke("main", **feeds[0])


def changed(*nodes: Any) -> Any:
    """A model of a sequence of three, changed by nodes, and joined."""
    every = [node("SequenceConstruct", ["x", "y", "x"], ["start"]), *nodes, node("ConcatFromSequence", ["end"], ["whole"], axis=1)]
    return model(every, {"x": f(2, 3), "y": f(2, 4), "k": place(0)}, ["whole"], shapes={"x": ["t", "a"], "y": ["t", "b"]})


@pytest.mark.parametrize("op, places", [("SequenceErase", (0, 1, 2, -1, -3)), ("SequenceInsert", (0, 2, 3, -1, -3))])
def test_a_sequence_changed_at_a_place_that_is_an_input(op: str, places: tuple[int, ...]) -> None:
    proto = changed(node(op, ["start", "k"] if op == "SequenceErase" else ["start", "y", "k"], ["end"]))
    check_many(proto, [{"x": f(t, 3), "y": f(t, 4), "k": place(k)} for t, k in zip((2, 1, 5, 3, 1), places)])
    mod, params = from_onnx(proto)
    machine = VirtualMachine(relay.vm.compile(mod, "llvm", params=params), cpu())
    for outside in (5, -5):
        with pytest.raises(AnchorlegError, match="no clause"):
            machine.invoke("main", x=f(2, 3), y=f(2, 4), k=place(outside))


def test_rows_put_in_front_of_a_sequence_by_a_loop() -> None:
    carried = helper.make_tensor_sequence_value_info("rows", 1, None)
    info = helper.make_tensor_value_info
    body = helper.make_graph([node("Gather", ["x", "i"], ["row"], axis=0), node("SequenceInsert", ["rows", "row", "zero"], ["more"]), node("Identity", ["go"], ["on"])],
                             "body", [info("i", 7, []), info("go", 9, []), carried],
                             [info("on", 9, []), helper.make_tensor_sequence_value_info("more", 1, None)])
    nodes = [node("SequenceEmpty", [], ["none"]), node("Loop", ["turns", "", "none"], ["rows_end"], body=body),
             node("ConcatFromSequence", ["rows_end"], ["y"], axis=0, new_axis=1)]
    feeds = [{"x": f(t, 3), "turns": place(t)} for t in (3, 1, 6)]
    check_many(model(nodes, feeds[0], ["y"], constants={"zero": place(0)}, shapes={"x": ["t", 3]}), feeds)
