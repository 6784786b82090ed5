"""Small kernels from handwritten LLVM IR, and graphs that call them."""

from __future__ import annotations

import json

import pytest

from anchorleg.runtime import llvm
from anchorleg.runtime.compiled import CompiledModule, KernelInfo

KERNELS = """
define i32 @add16(ptr %a, ptr %b, ptr %o, ptr %w) {
  %x = load <16 x float>, ptr %a, align 64
  %y = load <16 x float>, ptr %b, align 64
  %z = fadd <16 x float> %x, %y
  store <16 x float> %z, ptr %o, align 64
  ret i32 0
}
define i32 @twice16(ptr %a, ptr %o, ptr %w) {
  %x = load <16 x float>, ptr %a, align 64
  %z = fadd <16 x float> %x, %x
  store <16 x float> %z, ptr %w, align 64
  %v = load <16 x float>, ptr %w, align 64
  store <16 x float> %v, ptr %o, align 64
  ret i32 0
}
define i32 @fails(ptr %a, ptr %o, ptr %w) {
  ret i32 7
}
declare i32 @al_parallel_launch(ptr, ptr, i32)
define internal i32 @body(i32 %t, i32 %n, ptr %o) {
  %p = getelementptr float, ptr %o, i32 %t
  %f = sitofp i32 %t to float
  store float %f, ptr %p, align 4
  ret i32 0
}
define i32 @iota16(ptr %o, ptr %w) {
  %r = call i32 @al_parallel_launch(ptr @body, ptr %o, i32 16)
  ret i32 %r
}
@message = private constant [9 x i8] c"bad rank\\00"
declare void @TVMAPISetLastError(ptr)
define i32 @packed_rank(ptr %args, ptr %codes, i32 %n, ptr %ret, ptr %rcode, ptr %res) {
  %t = load ptr, ptr %args, align 8
  %at = getelementptr i8, ptr %t, i64 16
  %rank = load i32, ptr %at, align 4
  %bad = icmp eq i32 %rank, 0
  br i1 %bad, label %fail, label %good
fail:
  call void @TVMAPISetLastError(ptr @message)
  ret i32 -1
good:
  %wide = sext i32 %rank to i64
  store i64 %wide, ptr %ret, align 8
  store i32 0, ptr %rcode, align 4
  ret i32 0
}
"""


@pytest.fixture(scope="session")
def objects() -> list[bytes]:
    return [llvm.compile_text(f'target triple = "{llvm.host_triple()}"\n' + KERNELS)]


@pytest.fixture
def library(objects) -> CompiledModule:
    kernels = {
        "add": KernelInfo(fast="add16"), "twice": KernelInfo(fast="twice16", workspace_bytes=64),
        "iota": KernelInfo(fast="iota16"), "fails": KernelInfo(fast="fails"), "rank": KernelInfo(packed="packed_rank"),
    }
    return CompiledModule(objects, kernels, llvm.host_triple(), llvm.host_cpu())


def graph_json(nodes, heads, shapes, storage, dtypes=None) -> str:
    """Graph JSON from ``(name, function or None, [input node numbers])`` triples of single-output nodes."""
    raw = []
    for name, function, inputs in nodes:
        node = {"op": "tvm_op" if function else "null", "name": name, "inputs": [[i, 0, 0] for i in inputs]}
        if function:
            node["attrs"] = {
                "func_name": function, "num_inputs": str(len(inputs)), "num_outputs": "1", "flatten_data": "0",
            }
        raw.append(node)
    return json.dumps({
        "nodes": raw, "arg_nodes": [i for i, n in enumerate(nodes) if n[1] is None],
        "heads": [[h, 0, 0] for h in heads], "node_row_ptr": list(range(len(nodes) + 1)),
        "attrs": {
            "dltype": ["list_str", dtypes or ["float32"] * len(nodes)], "shape": ["list_shape", shapes],
            "storage_id": ["list_int", storage],
        },
    })


@pytest.fixture
def make_graph():
    return graph_json
