"""If, Loop and Scan against ONNX Runtime: by the numpy rules, and compiled for the virtual machine."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import pytest
from onnx import TensorProto, helper

from anchorleg.ir.visit import post_order
from anchorleg.relay.expr import If
from anchorleg.relay.frontend import from_onnx
from anchorleg.support.errors import UnsupportedOpError

from .models import check, check_many, model, ours

pytest.importorskip("onnxruntime")
_rng = np.random.default_rng(11)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def f(*shape: int) -> np.ndarray:
    return _rng.standard_normal(shape).astype(np.float32)


def i64(value: Any) -> np.ndarray:
    return np.array(value, np.int64)


def value(name: str, kind: int = FLOAT, shape: Any = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any] = ()) -> Any:
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs))


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), list(outputs), name=outputs[0] + "_node", **attributes)


def ifs(mod: Any) -> int:
    return sum(isinstance(n, If) for n in post_order(mod["main"], lambda n: n.children()))


# ---- If ------------------------------------------------------------------------------------------------------------------

def branch(*nodes: Any) -> Any:
    return graph(nodes, [value(nodes[-1].output[0])])


def test_branches_of_different_sizes_join() -> None:
    cut = node("Slice", ["x", "zero", "two"], ["short"])
    both = node("If", ["c"], ["y"], then_branch=branch(cut), else_branch=branch(node("Concat", ["x", "x"], ["long"], axis=0)))
    x = f(4, 3)
    proto = model([both, node("Exp", ["y"], ["z"])], {"c": np.array(True), "x": x}, ["z"], constants={"zero": i64([0]), "two": i64([2])})
    check_many(proto, [{"c": np.array(c), "x": x} for c in (True, False)])


def test_branches_with_several_results() -> None:
    yes = graph([node("Neg", ["x"], ["a1"]), node("Abs", ["x"], ["b1"])], [value("a1"), value("b1")])
    no = graph([node("Exp", ["x"], ["a2"]), node("Identity", ["x"], ["b2"])], [value("a2"), value("b2")])
    proto = model([node("If", ["c"], ["a", "b"], then_branch=yes, else_branch=no)], {"c": np.array([True]), "x": f(2, 3)}, ["a", "b"],
                  shapes={"x": ["n", 3]})
    check_many(proto, [{"c": np.array([c]), "x": f(n, 3)} for c, n in ((True, 2), (False, 5))])


def squeezed() -> list[Any]:
    """x without its last axis where that has size 1."""
    return [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "last"], ["size"]), node("Equal", ["size", "one"], ["is_one"]),
            node("If", ["is_one"], ["y"], then_branch=branch(node("Squeeze", ["x", "last"], ["flat"])),
                 else_branch=branch(node("Identity", ["x"], ["same"])))]


SQUEEZE = {"last": i64([-1]), "one": i64([1])}


def test_branches_of_different_rank_agree_later() -> None:
    proto = model([*squeezed(), node("Mul", ["y", "y"], ["y2"]), node("ReduceSum", ["y2"], ["z"], keepdims=0)], {"x": f(2, 3, 1)}, ["z"],
                  constants=SQUEEZE, shapes={"x": [2, 3, "k"]})
    check_many(proto, [{"x": f(2, 3, k)} for k in (1, 4)])


def test_a_way_that_makes_no_sense_is_left_out() -> None:
    w = f(4, 3)
    proto = model([*squeezed(), node("Gemm", ["y", "w"], ["z"], transB=1)], {"x": f(2, 3, 1)}, ["z"], constants={**SQUEEZE, "w": w},
                  shapes={"x": ["n", 3, "k"]})
    mod, _ = from_onnx(proto)
    assert ifs(mod) == 0
    check_many(proto, [{"x": f(n, 3, 1)} for n in (2, 5)])


def test_ranks_differ_through_enclosing_branches() -> None:
    inner = graph(squeezed(), [value("y")])
    other = branch(node("Neg", ["x"], ["negative"]))
    proto = model([node("If", ["c"], ["v"], then_branch=inner, else_branch=other), node("ReduceMax", ["v"], ["z"], keepdims=0)],
                  {"c": np.array(True), "x": f(2, 1)}, ["z"], constants=SQUEEZE, shapes={"x": [2, "k"]})
    check_many(proto, [{"c": np.array(c), "x": f(2, k)} for c in (True, False) for k in (1, 3)])


def test_results_of_different_rank_are_refused() -> None:
    proto = model(squeezed(), {"x": f(2, 3, 1)}, ["y"], constants=SQUEEZE, shapes={"x": [2, 3, "k"]})
    with pytest.raises(UnsupportedOpError, match="results have other numbers of dimensions"):
        from_onnx(proto)


def test_names_inside_hide_names_around() -> None:
    yes = graph([node("Neg", ["x"], ["y"])], [value("y")])
    no = graph([node("Exp", ["x"], ["y"])], [value("y")])
    proto = model([node("If", ["c"], ["y"], then_branch=yes, else_branch=no)], {"c": np.array(True), "x": f(2)}, ["y"])
    x = f(2)
    np.testing.assert_array_equal(ours(proto, {"c": np.array(True), "x": x})[0], -x)


# ---- Loop ----------------------------------------------------------------------------------------------------------------

HEAD = [value("i", INT64, []), value("going", BOOL, [])]


def looped(m: str, start: str, carried: Sequence[str], body: Any, outputs: Sequence[str]) -> Any:
    return helper.make_node("Loop", [m, start, *carried], list(outputs), body=body, name="loop")


def test_turns_computed_by_the_model() -> None:
    body = graph([node("Add", ["s", "x"], ["s2"]), node("Identity", ["going"], ["again"]), node("Mul", ["s2", "s2"], ["row"])],
                 [value("again", BOOL, []), value("s2", shape=[3]), value("row", shape=[3])], [*HEAD, value("s", shape=[3])])
    proto = model([looped("m", "", ["s0"], body, ["s_end", "rows"])], {"m": i64(4), "s0": f(3), "x": f(3)}, ["s_end", "rows"])
    check_many(proto, [{"m": i64(m), "s0": f(3), "x": f(3)} for m in (0, 1, 7)])


def test_while_loop_that_collects() -> None:
    body = graph([node("Add", ["s", "step"], ["s2"]), node("Less", ["s2", "limit"], ["again"]), node("Mul", ["s2", "x"], ["row"])],
                 [value("again", BOOL, []), value("s2", shape=[]), value("row", shape=[None])], [*HEAD, value("s", shape=[])])
    nodes = [node("Less", ["s0", "limit"], ["start"]), looped("", "start", ["s0"], body, ["s_end", "rows"])]
    zero = np.array(0, np.float32)
    proto = model(nodes, {"limit": zero, "x": f(3)}, ["s_end", "rows"], constants={"s0": zero, "step": np.array(1, np.float32)},
                  shapes={"x": ["n"]})
    check_many(proto, [{"limit": np.array(m, np.float32), "x": f(n)} for m, n in ((1, 2), (5, 3), (40, 1))])


def test_carried_value_that_grows() -> None:
    body = graph([node("Concat", ["g", "x"], ["g2"], axis=0), node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), value("g2", shape=[None])], [*HEAD, value("g", shape=[None])])
    proto = model([looped("m", "yes", ["x"], body, ["all"])], {"m": i64(3), "x": f(2)}, ["all"], constants={"yes": np.array(True)},
                  shapes={"x": ["n"]})
    check_many(proto, [{"m": i64(m), "x": f(n)} for m, n in ((0, 2), (3, 2), (5, 1))])


def test_a_size_that_changes_is_not_taken_for_another() -> None:
    """``Expand(g, Shape(x))`` does nothing as long as g is as long as x: which it is in the first turn only."""
    body = graph([node("Shape", ["x"], ["shape"]), node("Expand", ["g", "shape"], ["wide"]), node("ReduceSum", ["wide"], ["sum"], keepdims=1),
                  node("Mul", ["sum", "half"], ["g2"]), node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), value("g2", shape=[None])], [*HEAD, value("g", shape=[None])])
    proto = model([looped("m", "", ["x"], body, ["end"])], {"m": i64(3), "x": f(2)}, ["end"], constants={"half": np.array(0.5, np.float32)},
                  shapes={"x": ["n"]})
    check_many(proto, [{"m": i64(m), "x": f(4)} for m in (1, 3)])


def test_loops_inside_branches_and_loops() -> None:
    inner = graph([node("Add", ["t", "x"], ["t2"]), node("Identity", ["going2"], ["again2"])],
                  [value("again2", BOOL, []), value("t2", shape=[2])], [value("j", INT64, []), value("going2", BOOL, []), value("t", shape=[2])])
    outer = graph([helper.make_node("Loop", ["i", "", "s"], ["s2"], body=inner, name="inner"), node("Identity", ["going"], ["again"])],
                  [value("again", BOOL, []), value("s2", shape=[2])], [*HEAD, value("s", shape=[2])])
    run = graph([looped("m", "", ["x"], outer, ["looped"])], [value("looped", shape=[2])])
    proto = model([node("If", ["c"], ["y"], then_branch=run, else_branch=branch(node("Neg", ["x"], ["negative"])))],
                  {"c": np.array(True), "m": i64(3), "x": f(2)}, ["y"])
    check_many(proto, [{"c": np.array(c), "m": i64(4), "x": f(2)} for c in (True, False)])


def test_known_turns_are_unrolled() -> None:
    body = graph([node("Add", ["s", "x"], ["s2"]), node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), value("s2", shape=[3]), value("s2", shape=[3])], [*HEAD, value("s", shape=[3])])
    proto = model([looped("m", "", ["s0"], body, ["s_end", "rows"])], {"s0": f(3), "x": f(3)}, ["s_end", "rows"], constants={"m": i64(5)})
    assert ifs(from_onnx(proto)[0]) == 0
    check(proto, {"s0": f(3), "x": f(3)})


def test_loop_without_turns_collects_nothing() -> None:
    body = graph([node("Add", ["s", "x"], ["s2"]), node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), value("s2", shape=[3]), value("s2", shape=[3])], [*HEAD, value("s", shape=[3])])
    proto = model([looped("m", "", ["s0"], body, ["s_end", "rows"])], {"s0": f(3), "x": f(3)}, ["s_end", "rows"], constants={"m": i64(0)})
    check(proto, {"s0": f(3), "x": f(3)})


def test_a_carried_value_cannot_change_its_rank() -> None:
    body = graph([node("Unsqueeze", ["g", "zero"], ["g2"]), node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), value("g2")], [*HEAD, value("g")])
    proto = model([looped("m", "", ["x"], body, ["end"])], {"m": i64(3), "x": f(2)}, ["end"], constants={"zero": i64([0])})
    with pytest.raises(Exception, match="'loop'.*only its sizes may change"):
        from_onnx(proto)


# ---- Scan ----------------------------------------------------------------------------------------------------------------

def scanned(**attributes: Any) -> Any:
    body = graph([node("Add", ["s", "a"], ["s2"]), node("Mul", ["s2", "b"], ["row"])], [value("s2", shape=[2]), value("row", shape=[2])],
                 [value("s", shape=[2]), value("a", shape=[2]), value("b", shape=[2])])
    return helper.make_node("Scan", ["s0", "xa", "xb"], ["s_end", "rows"], name="scan", body=body, num_scan_inputs=2, **attributes)


@pytest.mark.parametrize("attributes", [
    {}, {"scan_input_directions": [1, 0]}, {"scan_output_directions": [1]}, {"scan_input_axes": [0, 1], "scan_output_axes": [1]},
    {"scan_input_axes": [0, -1], "scan_input_directions": [0, 1], "scan_output_axes": [-1], "scan_output_directions": [1]}])
@pytest.mark.parametrize("unknown", [False, True])
def test_scan(attributes: dict[str, Any], unknown: bool) -> None:
    swap = attributes.get("scan_input_axes", [0, 0])[1] != 0

    def feed(steps: int) -> dict[str, np.ndarray]:
        return {"s0": f(2), "xa": f(steps, 2), "xb": f(2, steps) if swap else f(steps, 2)}

    first = feed(3)
    shapes = {"xa": ["t", 2], "xb": [2, "t"] if swap else ["t", 2]} if unknown else {}
    proto = model([scanned(**attributes)], first, ["s_end", "rows"], shapes=shapes)
    check_many(proto, [first, feed(6)] if unknown else [first], machine=unknown)


@pytest.mark.parametrize("limit", [0, 3])
def test_unroll_limit(limit: int) -> None:
    feed = {"s0": f(2), "xa": f(4, 2), "xb": f(4, 2)}
    proto = model([scanned()], feed, ["s_end", "rows"])
    config = {"unroll_limit": limit}
    assert ifs(from_onnx(proto, convert_config=config)[0]) == 1
    check_many(proto, [feed], convert_config=config)


# ---- sequences -------------------------------------------------------------------------------------------------------------

def test_sequence_carried_through_known_turns() -> None:
    sequence = helper.make_tensor_sequence_value_info
    body = graph([node("Mul", ["x", "two"], ["x2"]), node("SequenceInsert", ["q", "x2"], ["q2"]), node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), sequence("q2", FLOAT, None)], [*HEAD, sequence("q", FLOAT, None)])
    nodes = [node("SequenceEmpty", [], ["q0"]), looped("m", "", ["q0"], body, ["q_end"]), node("ConcatFromSequence", ["q_end"], ["y"], axis=0)]
    proto = model(nodes, {"x": f(2, 3)}, ["y"], constants={"m": i64(3), "two": np.array(2, np.float32)}, shapes={"x": ["n", 3]})
    check_many(proto, [{"x": f(n, 3)} for n in (1, 4)])


def test_sequence_map() -> None:
    body = graph([node("Mul", ["e", "e"], ["e2"])], [value("e2")], [value("e")])
    nodes = [node("SplitToSequence", ["x", "parts"], ["q"], axis=0), node("SequenceMap", ["q"], ["q2"], body=body),
             node("ConcatFromSequence", ["q2"], ["y"], axis=0)]
    check(model(nodes, {"x": f(5, 2)}, ["y"], constants={"parts": i64([1, 4])}), {"x": f(5, 2)})


def test_sequence_of_branches() -> None:
    yes = branch(node("SequenceConstruct", ["x", "x"], ["q1"]))
    no = graph([node("Neg", ["x"], ["negative"]), node("SequenceConstruct", ["negative", "x"], ["q2"])], [value("q2")])
    for g, name in ((yes, "q1"), (no, "q2")):
        g.output[0].CopyFrom(helper.make_tensor_sequence_value_info(name, FLOAT, None))
    nodes = [node("If", ["c"], ["q"], then_branch=yes, else_branch=no), node("SequenceAt", ["q", "zero"], ["y"])]
    x = f(3)
    proto = model(nodes, {"c": np.array(True), "x": x}, ["y"], constants={"zero": i64(0)})
    check_many(proto, [{"c": np.array(c), "x": x} for c in (True, False)])


# ---- ranks that depend on sizes --------------------------------------------------------------------------------------------

def test_squeeze_of_unknown_sizes() -> None:
    nodes = [node("Squeeze", ["x"], ["y"]), node("Exp", ["y"], ["y2"]), node("ReduceMax", ["y2"], ["z"], keepdims=0)]
    proto = model(nodes, {"x": f(2, 1, 3)}, ["z"], shapes={"x": ["a", 1, "b"]})
    check_many(proto, [{"x": f(a, 1, b)} for a, b in ((2, 3), (1, 3), (2, 1), (1, 1))])


def test_declared_rank_of_a_result_decides() -> None:
    proto = model([node("Squeeze", ["x"], ["y"]), node("Exp", ["y"], ["z"])], {"x": f(1, 1)}, [], shapes={"x": ["batch", 1]})
    proto.graph.output.append(value("z", shape=[]))
    check_many(proto, [{"x": f(1, 1)}])
    with pytest.raises(Exception, match="size 1|expected 1"):
        ours(proto, {"x": f(2, 1)})


# ---- sequences of unknown length ---------------------------------------------------------------------------------------------

def appended(*after: Any, element: str = "x2") -> list[Any]:
    sequence = helper.make_tensor_sequence_value_info
    body = graph([node("Cast", ["i"], ["i_f"], to=FLOAT), node("Add", ["x", "i_f"], ["x2"]), node("SequenceInsert", ["q", element], ["q2"]),
                  node("Identity", ["going"], ["again"])],
                 [value("again", BOOL, []), sequence("q2", FLOAT, None)], [*HEAD, sequence("q", FLOAT, None)])
    return [node("SequenceConstruct", ["x"], ["q0"]), looped("m", "", ["q0"], body, ["q_end"]), *after]


@pytest.mark.parametrize("attributes", [{"axis": 0}, {"axis": -1}, {"axis": 1, "new_axis": 1}])
def test_sequence_of_unknown_length_joined(attributes: dict[str, Any]) -> None:
    proto = model(appended(node("ConcatFromSequence", ["q_end"], ["y"], **attributes)), {"m": i64(3), "x": f(2, 3)}, ["y"], shapes={"x": ["n", 3]})
    check_many(proto, [{"m": i64(m), "x": f(n, 3)} for m, n in ((0, 2), (3, 1), (6, 4))])


def test_elements_of_a_sequence_of_unknown_length() -> None:
    after = [node("SequenceLength", ["q_end"], ["count"]), node("SequenceAt", ["q_end", "at"], ["one"]), node("SequenceErase", ["q_end"], ["less"]),
             node("SequenceAt", ["less", "minus"], ["two"])]
    proto = model(appended(*after), {"m": i64(3), "at": i64(1), "x": f(2)}, ["count", "one", "two"], constants={"minus": i64(-1)})
    check_many(proto, [{"m": i64(5), "at": i64(k), "x": f(2)} for k in (0, 2, -1, -6)])


# ---- optional values -----------------------------------------------------------------------------------------------------------

def test_optional_values() -> None:
    tensor = helper.make_tensor_type_proto(FLOAT, None)
    kind = helper.make_optional_type_proto(tensor)
    some = graph([node("Optional", ["x"], ["o1"])], [helper.make_value_info("o1", kind)])
    none = graph([node("Optional", [], ["o2"], type=tensor)], [helper.make_value_info("o2", kind)])
    take = graph([node("OptionalGetElement", ["o"], ["e"]), node("Exp", ["e"], ["taken"])], [value("taken")])
    nodes = [node("If", ["c"], ["o"], then_branch=some, else_branch=none), node("OptionalHasElement", ["o"], ["has"]),
             node("If", ["has"], ["y"], then_branch=take, else_branch=branch(node("Neg", ["x"], ["negative"])))]
    proto = model(nodes, {"c": np.array(True), "x": f(3)}, ["y"], opset=16)
    x = f(3)
    np.testing.assert_allclose(ours(proto, {"c": np.array(True), "x": x})[0], np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(ours(proto, {"c": np.array(False), "x": x})[0], -x)


@pytest.mark.parametrize(("size", "keepdims"), [(None, 0), (None, 1), (2, 1)])
@pytest.mark.parametrize("axis", [0, 1])
def test_split_of_unknown_size(size: int | None, keepdims: int, axis: int) -> None:
    inputs = ["x"] if size is None else ["x", "size"]
    nodes = [node("SplitToSequence", inputs, ["q"], axis=axis, keepdims=keepdims), node("SequenceLength", ["q"], ["count"]),
             node("SequenceAt", ["q", "at"], ["part"])]
    shape = ["n", 3] if axis == 0 else [3, "n"]
    proto = model(nodes, {"x": f(5, 3) if axis == 0 else f(3, 5), "at": i64(1)}, ["count", "part"],
                  constants={} if size is None else {"size": i64(size)}, shapes={"x": shape})
    check_many(proto, [{"x": f(n, 3) if axis == 0 else f(3, n), "at": i64(k)} for n, k in ((5, 1), (5, -1), (3, 0))])


def test_a_sequence_of_rows_of_unknown_sizes_is_used_after_its_loop() -> None:
    body = graph([node("MatMul", ["u", "w"], ["o"]), node("Softmax", ["o"], ["p"])], [value("p", shape=["k", "m"])], [value("u", shape=["k", "q"])])
    scan = helper.make_node("Scan", ["x"], ["rows"], name="scan", body=body, num_scan_inputs=1)
    feeds = [{"x": f(t, k, q), "w": f(q, m)} for t, k, q, m in ((3, 2, 4, 5), (1, 1, 1, 1), (8, 1, 9, 2))]
    check_many(model([scan], feeds[0], ["rows"], shapes={"x": ["t", "k", "q"], "w": ["q", "m"]}), feeds)
