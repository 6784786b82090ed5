"""C files of packed functions: each stands before a kernel and takes its pointers from tensors."""
from __future__ import annotations

from typing import Sequence

from .kernel import CKernel
from .source import CSource

HEADERS = ("<tvm/runtime/c_runtime_api.h>", "<tvm/runtime/c_backend_api.h>")
_DATA = """static void* al_data(TVMValue value) {
    const DLTensor* tensor = (const DLTensor*)value.v_handle;
    return (void*)((uint8_t*)tensor->data + tensor->byte_offset);
}
"""


def packed_function(kernel: CKernel, symbol: str) -> str:
    """The packed function ``symbol`` that calls a kernel; scratch memory is taken for the time of the call."""
    count = len(kernel.written)
    arguments = [f"al_data(args[{i}])" for i in range(count)] + (["(uint8_t*)workspace"] if kernel.workspace_bytes else [])
    call = f"{kernel.symbol}({', '.join(arguments)})"
    lines = ["(void)type_codes; (void)out_value; (void)out_type_code; (void)resource_handle;", f"if (num_args != {count}) return -1;"]
    if kernel.workspace_bytes:
        lines += [f"void* workspace = TVMBackendAllocWorkspace(kDLCPU, 0, {kernel.workspace_bytes}, kDLUInt, 8);", "if (!workspace) return -1;",
                  f"int32_t status = {call};", "TVMBackendFreeWorkspace(kDLCPU, 0, workspace);", "return status;"]
    else:
        lines.append(f"return {call};")
    body = "".join(f"    {line}\n" for line in lines)
    return (f"TVM_DLL int32_t {symbol}(TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle) {{\n"
            f"{body}}}\n")


def packed_source(title: str, kernels: Sequence[tuple[str, CKernel]], head: str = "") -> str:
    """A file with a packed function for each (symbol, kernel); ``head`` is text put before them, such as further includes."""
    functions = [packed_function(k, symbol) for symbol, k in kernels]
    return CSource(title, [k for _, k in kernels], functions, HEADERS, (), [head] * bool(head) + [_DATA]).text


__all__ = ["packed_function", "packed_source"]
