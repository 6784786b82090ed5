"""Packed functions of native code as nodes of the graph executor's loop."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from anchorleg.runtime import ndarray
from anchorleg.runtime.c_compiler import find_compiler
from anchorleg.runtime.graph_executor import GraphExecutor
from anchorleg.runtime.packed_func import PackedFunc
from anchorleg.runtime.source_module import CSourceModule
from anchorleg.support.errors import AnchorlegError

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")

CODE = """#include <tvm/runtime/c_backend_api.h>
TVM_DLL int32_t scale(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
    DLTensor* in = (DLTensor*)args[0].v_handle;
    DLTensor* out = (DLTensor*)args[1].v_handle;
    int wrong = count != 2 || codes[0] != kTVMDLTensorHandle || codes[1] != kTVMDLTensorHandle || resource || *result_code != kTVMNullptr;
    wrong |= in->ndim != 2 || in->shape[0] != 2 || in->shape[1] != 3 || in->strides || in->byte_offset || in->device.device_type != kDLCPU;
    wrong |= in->dtype.code != kDLFloat || in->dtype.bits != 32 || in->dtype.lanes != 1 || out->ndim != 2;
    if (wrong) { TVMAPISetLastError("not the tensors that were described"); return -1; }
    for (int i = 0; i < 6; ++i) {
        if (((float*)in->data)[i] < 0) { TVMAPISetLastError("a negative element"); return 7; }
        ((float*)out->data)[i] = 2 * ((float*)in->data)[i];
    }
    return 0;
}
"""
X = np.arange(6, dtype="float32").reshape(2, 3)


def executor(functions: list[Any]) -> GraphExecutor:
    """A graph of ``scale`` nodes in a row, answered by these functions."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "x", "inputs": []}]
    for i, _ in enumerate(functions):
        attrs = {"num_outputs": "1", "num_inputs": "1", "flatten_data": "0", "func_name": f"f{i}"}
        nodes.append({"op": "tvm_op", "name": f"node{i}", "attrs": attrs, "inputs": [[i, 0, 0]]})
    count = len(nodes)
    attrs = {"dltype": ["list_str", ["float32"] * count], "storage_id": ["list_int", list(range(count))], "shape": ["list_shape", [[2, 3]] * count]}
    graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[count - 1, 0, 0]], "attrs": attrs, "node_row_ptr": list(range(count + 1))}
    return GraphExecutor(json.dumps(graph), {f"f{i}": f for i, f in enumerate(functions)})


@pytest.fixture(scope="module")
def scale() -> PackedFunc:
    return CSourceModule(CODE, "c", ["scale"])["scale"]


def test_native_functions_are_called_by_the_loop_itself(scale: PackedFunc) -> None:
    graph = executor([scale, scale, scale])
    assert graph._segments == [[0, 3]]
    for k in range(2):
        graph.set_input("x", X + k)
        graph.run()
        np.testing.assert_array_equal(graph.get_output(0).numpy(), 8 * (X + k))


def test_memory_of_the_caller_is_read_and_written(scale: PackedFunc) -> None:
    graph = executor([scale, scale])
    given, result = ndarray.array(X + 5), ndarray.empty((2, 3), "float32")
    graph.set_input_zero_copy("x", given)
    graph.set_output_zero_copy(0, result)
    graph.run()
    np.testing.assert_array_equal(result.numpy(), 4 * (X + 5))


def test_python_functions_come_between(scale: PackedFunc) -> None:
    graph = executor([scale, PackedFunc(lambda a, out: out.copyfrom(a.numpy() + 1)), scale])
    assert [isinstance(s, list) for s in graph._segments] == [True, False, True]
    graph.set_input("x", X)
    graph.run()
    np.testing.assert_array_equal(graph.get_output(0).numpy(), 2 * (2 * X + 1))


def test_a_failure_names_the_node_and_says_what_the_function_left(scale: PackedFunc) -> None:
    graph = executor([scale, PackedFunc(lambda a, out: out.copyfrom(-a.numpy())), scale])
    graph.set_input("x", X)
    with pytest.raises(AnchorlegError, match=r"node 'node2' \(kernel 'f2'\) failed with status 7: a negative element"):
        graph.run()


def test_one_node_at_a_time(scale: PackedFunc) -> None:
    graph = executor([scale, scale])
    graph.set_input("x", X)
    for number in range(2):
        graph.run_call(number)
    np.testing.assert_array_equal(graph.get_output(0).numpy(), 4 * X)
