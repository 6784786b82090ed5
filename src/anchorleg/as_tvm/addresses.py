"""Addresses that only upstream has, and the module of ours that answers each."""
from __future__ import annotations

_ROOMS = "anchorleg.as_tvm.rooms"

# address under tvm → module
ADDRESSES: dict[str, str] = {
    "_ffi": f"{_ROOMS}.ffi",
    "_ffi._ffi_api": f"{_ROOMS}.ffi_api",
    "_ffi.base": f"{_ROOMS}.ffi_base",
    "_ffi.registry": f"{_ROOMS}.ffi",
    "_ffi.runtime_ctypes": f"{_ROOMS}.ffi_runtime",
    "parser": f"{_ROOMS}.parser",
    "meta_schedule": f"{_ROOMS}.successors",
    "auto_scheduler": f"{_ROOMS}.successors",
    "container": f"{_ROOMS}.container",
    "generic": f"{_ROOMS}.generic",
    "ir.base": f"{_ROOMS}.ir_base",
    "ir.container": f"{_ROOMS}.ir_container",
    "relay._ffi_api": f"{_ROOMS}.ffi_api",
    "relay.analysis._ffi_api": f"{_ROOMS}.analysis_ffi_api",
    "relay.transform._ffi_api": f"{_ROOMS}.transform_ffi_api",
    "relay.backend._backend": f"{_ROOMS}.backend_ffi_api",
    "relay.backend._ffi_api": f"{_ROOMS}.backend_ffi_api",
    "contrib.cuda_graph": f"{_ROOMS}.cuda_graph",
    "contrib.cuda_graph.cuda_graph_executor": f"{_ROOMS}.absent",
    "contrib.cudnn": f"{_ROOMS}.absent",
    "contrib.cublas": f"{_ROOMS}.absent",
    "contrib.nnpack": f"{_ROOMS}.absent",
    "relay.op._make": f"{_ROOMS}.relay_make",
    "runtime._ffi_api": f"{_ROOMS}.runtime_ffi_api",
    "target._ffi_api": f"{_ROOMS}.ffi_api",
    "ir._ffi_api": f"{_ROOMS}.ffi_api",
    "te._ffi_api": f"{_ROOMS}.ffi_api",
    "tir._ffi_api": f"{_ROOMS}.ffi_api",
    "topi.cuda": f"{_ROOMS}.topi_cuda",
    "topi.cuda.conv3d_winograd": f"{_ROOMS}.topi_cuda",
    "topi.testing": f"{_ROOMS}.topi_testing",
    "tir.analysis._ffi_api": f"{_ROOMS}.ffi_api",
}
