"""Metadata of a lowered module: sizes of its functions, and the border of its main function."""
from __future__ import annotations

from typing import Any

from ....ir.memory_pools import AllocatedPoolInfo, ConstantPoolInfo, WorkspacePoolInfo
from ....ir.module import IRModule, NodeMap
from ....ir.type import TensorType
from ....support.errors import ArgumentError, TypeMismatchError
from ....tir.analysis import calculate_constant_bytes, calculate_workspace_bytes
from ....tir.buffer import Buffer
from ....tir.function import PrimFunc
from ..graph_nodes import TensorInfo
from .lower_main import MAIN
from .metadata import ExecutorCodegenMetadata, FunctionInfo
from .program import tensor_bytes


def CreateFunctionMetadata(mod: IRModule, workspace_byte_alignment: int, constant_byte_alignment: int) -> NodeMap:
    """Function name → ``FunctionInfo`` for every loop program of a module.

    Memory that planning took out of the functions (the module attribute ``pool_args``, a list of ``AllocatedPoolInfo``) is counted
    for the main function, on each target of its pool.  ArgumentError for a function without the attribute ``target``.
    """
    found = NodeMap()
    for var, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            found[var.name_hint] = _function_info(var.name_hint, func, int(workspace_byte_alignment), int(constant_byte_alignment))
    for pool in mod.get_attr("pool_args", None) or ():
        _add_pool(_main_of(found), pool)
    return found


def _main_of(found: NodeMap) -> FunctionInfo:
    if MAIN not in found:
        raise ArgumentError(f"the module has no function {MAIN!r}, whose memory the pools are counted for: run AOTLowerMain first")
    return found[MAIN]


def _function_info(name: str, func: PrimFunc, workspace_alignment: int, constant_alignment: int) -> FunctionInfo:
    target = func.get_attr("target")
    if target is None:
        raise ArgumentError(f"function {name!r} has no attribute 'target': its sizes are stated per target")
    io = sum(_buffer_bytes(b) for b in func.buffers if b is not None)
    workspace = calculate_workspace_bytes(func, workspace_alignment)
    return FunctionInfo({target: workspace}, {target: io}, {target: calculate_constant_bytes(func, constant_alignment)}, {target: func}, {})


def _buffer_bytes(b: Buffer) -> int:
    return tensor_bytes(TensorInfo(tuple(int(d) for d in b.shape), b.dtype))  # type: ignore[call-overload]


def _add_pool(main: FunctionInfo, pool: AllocatedPoolInfo) -> None:
    if isinstance(pool.pool_info, ConstantPoolInfo):
        sizes = main.constant_sizes
    elif isinstance(pool.pool_info, WorkspacePoolInfo):
        sizes = main.workspace_sizes
    else:
        raise TypeMismatchError(f"a pool is expected to be a WorkspacePoolInfo or a ConstantPoolInfo, got {type(pool.pool_info).__name__}")
    for target in pool.pool_info.targets:
        known = next((t for t in sizes if t == target), target)
        sizes[known] = sizes.get(known, 0) + pool.allocated_size


def CreateExecutorMetadata(mod: IRModule, mod_name: str, executor: Any, workspace_byte_alignment: int,
                           constant_byte_alignment: int) -> ExecutorCodegenMetadata:
    """The border of a module's main function (``__tvm_main__``), as an executor needs to know it.

    ``input_vars``, ``output_vars``, ``devices`` and ``pool_args`` are read from its attributes, ``io_tensor_pool_allocations`` from
    the module's.
    """
    if MAIN not in mod:
        raise ArgumentError(f"the module has no function {MAIN!r}: run AOTLowerMain first")
    main: PrimFunc = mod[MAIN]
    pools = {main.params[p.pool_var_idx]: p for p in main.get_attr("pool_args", None) or ()}
    inputs, outputs = list(main.get_attr("input_vars", ())), list(main.get_attr("output_vars", ()))
    return ExecutorCodegenMetadata(
        inputs, [_tensor_type(main, v) for v in inputs], [v.name for v in outputs], [_tensor_type(main, v) for v in outputs],
        list(pools), list(main.get_attr("devices", None) or ()), "aot", mod_name, executor.get("interface-api", "packed"),
        bool(executor.get("unpacked-api", False)), int(workspace_byte_alignment), int(constant_byte_alignment), pools,
        mod.get_attr("io_tensor_pool_allocations", None) or {})


def _tensor_type(main: PrimFunc, var: Any) -> TensorType:
    buffer = main.buffer_map[var]
    return TensorType(buffer.shape, buffer.dtype)
