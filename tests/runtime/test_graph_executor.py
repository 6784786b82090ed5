"""The graph executor: semantics of inputs, outputs, zero copy, sharing, errors."""

from __future__ import annotations

import numpy as np
import pytest

from anchorleg.contrib import graph_executor
from anchorleg.runtime import PackedFunc, array, cpu, empty, save_param_dict
from anchorleg.runtime.executor_factory import GraphExecutorFactory
from anchorleg.runtime.graph_executor import GraphExecutor, GraphExecutorModule, GraphModule
from anchorleg.support.errors import AnchorlegError, ArgumentError, ArtifactError, TypeMismatchError

X = np.arange(16, dtype=np.float32)
W = np.full(16, 10, np.float32)


@pytest.fixture
def simple(make_graph):
    """out = twice(x + w)"""
    return make_graph(
        [("x", None, []), ("w", None, []), ("sum", "add", [0, 1]), ("out", "twice", [2])],
        [3], [[16]] * 4, [0, 1, 2, 3],
    )


@pytest.fixture
def module(simple, library):
    factory = GraphExecutorFactory(simple, library, {"w": W})
    return GraphModule(factory["default"](cpu(0)))


def test_run(module):
    module.set_input("x", X)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))
    module.run(x=X + 1)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + 1 + W))


def test_numbers_and_info(module):
    assert module.get_num_inputs() == 2 and module.get_num_outputs() == 1
    assert module.get_input_index("w") == 1 and module.get_input_index("nothing") == -1
    assert module.get_input_info() == ({"x": (16,)}, {"x": "float32"})
    assert module.get_output_index("out") == 0
    assert module.get_input("nothing") is None
    np.testing.assert_array_equal(module.get_input(1).numpy(), W)


def test_unset_inputs_are_zero(module):
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * W)


def test_input_forms(module):
    for value in (X.tolist(), array(X), np.repeat(X, 2)[::2], tuple(X.tolist())):
        module.set_input(0, np.zeros(16, np.float32))
        module.set_input(0, value)
        np.testing.assert_array_equal(module.get_input("x").numpy(), X)


def test_get_output_into(module):
    module.run(x=X)
    out = empty((16,))
    assert module.get_output(0, out) is out
    np.testing.assert_array_equal(out.numpy(), 2 * (X + W))
    with pytest.raises(ArgumentError, match=r"expected out of shape \(16,\), got \(4,\)"):
        module.get_output(0, empty((4,)))


@pytest.mark.parametrize(
    "key, value, error, text",
    [
        ("y", X, ArgumentError, "no input 'y'; its inputs are 'x'"),
        (5, X, ArgumentError, "out of range"),
        ("x", X[:4], ArgumentError, r"input 'x': expected rank 1, shape \(16,\), got rank 1, shape \(4,\)"),
        ("x", X.reshape(4, 4), ArgumentError, "got rank 2"),
        ("x", X.astype("int32"), TypeMismatchError, "expected dtype float32, got int32"),
        ("x", "text", TypeMismatchError, "expected an array of float32"),
    ],
)
def test_wrong_inputs(module, key, value, error, text):
    with pytest.raises(error, match=text):
        module.set_input(key, value)
    with pytest.raises(ArgumentError, match="no input 'z'"):
        module.run(z=X)


def test_unknown_keyword_copies_nothing(module):
    module.set_input("x", X)
    with pytest.raises(ArgumentError):
        module.set_input(x=X + 1, z=X)
    np.testing.assert_array_equal(module.get_input("x").numpy(), X)


def test_ignored_names(simple, library):
    factory = GraphExecutorFactory(simple, library, {"w": W}, ignored=["folded"])
    module = GraphModule(factory["default"](cpu(0)))
    module.set_input(x=X, folded=np.ones(3))
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))


def test_params_are_shared_until_written(simple, library):
    factory = GraphExecutorFactory(simple, library, {"w": W})
    first, second = (GraphModule(factory["default"](cpu(0))) for _ in range(2))
    assert first.get_input("w").data_ptr == second.get_input("w").data_ptr == factory.params["w"].data_ptr
    first.set_input("w", W + 1)
    first.run(x=X), second.run(x=X)
    np.testing.assert_array_equal(first.get_output(0).numpy(), 2 * (X + W + 1))
    np.testing.assert_array_equal(second.get_output(0).numpy(), 2 * (X + W))


def test_load_and_share_params(simple, library):
    first = graph_executor.create(simple, library, cpu(0))
    data = save_param_dict({"w": W, "unrelated": X})
    first.load_params(data)
    second = graph_executor.create(simple, library, cpu(0))
    second.share_params(first, data)
    assert first.get_input("w").same_as(second.get_input("w"))
    second.run(x=X)
    np.testing.assert_array_equal(second.get_output(0).numpy(), 2 * (X + W))


def test_zero_copy(module):
    source, target = array(X), empty((16,))
    module.set_input_zero_copy("x", source)
    module.set_output_zero_copy(0, target)
    module.run()
    np.testing.assert_array_equal(target.numpy(), 2 * (X + W))
    assert module.get_output(0).data_ptr == target.data_ptr
    source[:] = X + 5
    module.run()
    np.testing.assert_array_equal(target.numpy(), 2 * (X + 5 + W))
    module.set_input("x", X)
    module.run()
    np.testing.assert_array_equal(source.numpy(), X + 5)
    np.testing.assert_array_equal(target.numpy(), 2 * (X + W))


def test_zero_copy_refuses(module):
    unaligned = np.zeros(20, np.float32)
    shift = next(i for i in range(2) if unaligned[i:].ctypes.data % 64)
    with pytest.raises(ArgumentError, match="64-byte border"):
        module.set_input_zero_copy("x", unaligned[shift:shift + 16])
    with pytest.raises(ArgumentError, match="contiguous"):
        module.set_input_zero_copy("x", empty((32,)).as_numpy_view()[::2])
    with pytest.raises(ArgumentError, match="shape"):
        module.set_output_zero_copy(0, empty((4,)))


def test_zero_copy_through_reshapes(make_graph, library):
    """Views on both sides of a kernel must be redirected along with what they view."""
    graph = make_graph(
        [("x", None, []), ("flat", "__nop", [0]), ("out", "twice", [1]), ("square", "__nop", [2])],
        [3], [[4, 4], [16], [16], [4, 4]], [0, 0, 1, 1],
    )
    module = graph_executor.create(graph, library, cpu(0))
    source, target = array(X.reshape(4, 4)), empty((4, 4))
    module.set_input_zero_copy("x", source)
    module.set_output_zero_copy(0, target)
    module.run()
    np.testing.assert_array_equal(target.numpy(), 2 * X.reshape(4, 4))
    module.set_input("x", X.reshape(4, 4) + 1)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * X.reshape(4, 4) + 2)


def test_zero_copy_output_leaves_a_shared_place_alone(make_graph, library):
    """An early value that shares the output's place in the arena does not go to the caller's memory."""
    graph = make_graph(
        [("x", None, []), ("a", "twice", [0]), ("b", "twice", [1]), ("c", "twice", [2])],
        [3], [[16]] * 4, [0, 1, 2, 1],
    )
    executor = GraphExecutor(graph, library.fast_kernels(), keep=library)
    target = empty((16,))
    executor.set_output_zero_copy(0, target)
    assert executor.entry_view(1).data_ptr != target.data_ptr
    executor.set_input("x", X)
    executor.run()
    np.testing.assert_array_equal(target.numpy(), 8 * X)


def test_outputs_that_are_inputs_or_repeat(make_graph, library):
    graph = make_graph(
        [("x", None, []), ("y", "twice", [0]), ("view", "__nop", [1])],
        [0, 1, 1, 2], [[16], [16], [4, 4]], [0, 1, 1],
    )
    module = graph_executor.create(graph, library, cpu(0))
    outs = [empty((16,)), empty((16,)), empty((16,)), empty((4, 4))]
    module.run(x=X)
    for i, want in enumerate((X, 2 * X, 2 * X, 2 * X.reshape(4, 4))):
        np.testing.assert_array_equal(module.get_output(i).numpy(), want)
    for i, out in enumerate(outs):
        module.set_output_zero_copy(i, out)
    module.run(x=X + 1)
    for out, want in zip(outs, (X + 1, 2 * X + 2, 2 * X + 2, (2 * X + 2).reshape(4, 4))):
        np.testing.assert_array_equal(out.numpy(), want)
        assert module.get_output(outs.index(out)) is out


def test_nop_between_different_places_copies(make_graph, library):
    graph = make_graph(
        [("x", None, []), ("view", "__nop", [0]), ("copy", "__copy", [1])], [1, 2], [[16], [4, 4], [4, 4]], [0, 1, 2]
    )
    module = graph_executor.create(graph, library, cpu(0))
    module.run(x=X)
    first = module.get_output(0).numpy(), module.get_output(1).numpy()
    np.testing.assert_array_equal(first[0], X.reshape(4, 4))
    np.testing.assert_array_equal(first[1], X.reshape(4, 4))


def test_python_functions_between_native_ones(make_graph, library):
    def external(a, out):
        out[:] = a.numpy() + 100

    graph = make_graph(
        [("x", None, []), ("a", "twice", [0]), ("b", "outside", [1]), ("c", "twice", [2])], [3], [[16]] * 4, [0, 1, 2, 3]
    )
    kernels = {**library.fast_kernels(), "outside": PackedFunc(external)}
    module = GraphModule(GraphExecutorModule(GraphExecutor(graph, kernels, keep=library)))
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (2 * X + 100))


def test_failing_kernel_names_its_node(make_graph, library):
    graph = make_graph([("x", None, []), ("a", "twice", [0]), ("b", "fails", [1])], [2], [[16]] * 3, [0, 1, 2])
    module = graph_executor.create(graph, library, cpu(0))
    with pytest.raises(AnchorlegError, match=r"node 'b' \(kernel 'fails'\) failed with status 7"):
        module.run()


def test_missing_kernel(make_graph, library):
    graph = make_graph([("x", None, []), ("a", "absent", [0])], [1], [[16]] * 2, [0, 1])
    with pytest.raises(ArtifactError, match="no function 'absent', which node 'a' calls"):
        graph_executor.create(graph, library, cpu(0))


def test_parallel_kernel(make_graph, library):
    module = graph_executor.create(make_graph([("out", "iota", [])], [0], [[16]], [0]), library, cpu(0))
    for _ in range(100):
        module.get_output(0)[:] = 0
        module.run()
        np.testing.assert_array_equal(module.get_output(0).numpy(), X)


def test_long_chain(make_graph, library):
    count = 20_000
    nodes = [("x", None, [])] + [(f"n{i}", "twice", [i]) for i in range(count)]
    graph = make_graph(nodes, [count], [[16]] * (count + 1), [0] + [1 + i % 2 for i in range(count)])
    module = graph_executor.create(graph, library, cpu(0))
    module.run(x=np.zeros(16, np.float32))
    np.testing.assert_array_equal(module.get_output(0).numpy(), 0)
    assert module._executor.arena_bytes == 256


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda g: g.replace('"heads": [[3', '"heads": [[9'), "node 9"),
        (lambda g: g.replace("[[0, 0, 0], [1", "[[2, 0, 0], [1"), "not defined before its use"),
        (lambda g: g.replace("tvm_op", "mystery"), "unknown kind"),
        (lambda g: g.replace("dltype", "type"), "'dltype' is missing"),
        (lambda g: g[: len(g) // 2], "malformed"),
        (lambda g: "[]", "malformed"),
        (lambda g: g.replace("[16]", "[-16]"), "negative"),
    ],
)
def test_malformed_graphs(simple, library, change, text):
    with pytest.raises(ArtifactError, match=text):
        graph_executor.create(change(simple), library, cpu(0))


def test_benchmark(module):
    result = module.benchmark(cpu(0), repeat=3, number=2, x=X)
    assert len(result.results) == 3 and result.min <= result.median <= result.max
    assert "mean (ms)" in str(result)
    assert module.benchmark(cpu(0), repeat=1, number=1, end_to_end=True, x=X).mean > 0
    assert module.module.time_evaluator("run", cpu(0), number=3, repeat=2)().std >= 0


def test_functions_by_name(module):
    module["set_input"]("x", X)
    module["run"]()
    np.testing.assert_array_equal(module["get_output"](0).numpy(), 2 * (X + W))
    assert module["get_num_outputs"]() == 1
    (out,) = module["run_from_inputs"](1, 0, "x", X)
    np.testing.assert_array_equal(out.numpy(), 2 * (X + W))
    with pytest.raises(AttributeError, match="no function 'missing'"):
        module["missing"]


def test_results_outlive_the_module(simple, library):
    module = GraphModule(GraphExecutorFactory(simple, library, {"w": W})["default"](cpu(0)))
    module.run(x=X)
    out = module.get_output(0)
    del module
    np.testing.assert_array_equal(out.numpy(), 2 * (X + W))
