"""Functions of external compilers in a program compiled ahead of time.

The main function calls kernels with pointers; external functions are packed functions that take tensors.  An *adapter* of the form of
a kernel stands between the two: it makes the tensors on its stack.  In C it also hands constants over, before the first call.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from ....ir.expr import BaseFunc
from ....ir.module import IRModule
from ....runtime.c_headers import support_files
from ....runtime.dtype import DataType
from ....runtime.module import Module
from ....runtime.source_module import CSourceModule
from ....support.errors import BuildError
from ....target.codegen.c import CKernel
from ..external import ExternalCode, compile_prim_funcs, constants_of
from ..graph_executor_codegen import GraphCode
from ..graph_nodes import GraphNode, TensorInfo

_INCLUDE = "#include <tvm/runtime/c_runtime_api.h>"
_PACKED = "TVMValue* args, int* type_codes, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle"


class Foreign(NamedTuple):
    """An external function: its symbol, its inputs and results, the constants that are handed over before its first call."""

    symbol: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    constants: tuple[Any, ...] = ()

    @property
    def adapter(self) -> str:
        """The adapter's symbol."""
        return f"{self.symbol}_by_pointers"

    @property
    def tensors(self) -> tuple[TensorInfo, ...]:
        """Everything it is given."""
        return (*self.inputs, *self.outputs)


class LoopPrograms(NamedTuple):
    """Object code of loop programs, and the symbol of each."""

    objects: list[bytes]
    symbols: dict[str, str]


class ForeignCode:
    """The external functions that a graph calls, and where their code is.

    ``functions``: packed functions by symbol; ``prim_funcs``: loop programs, which become kernels like any other; ``modules``: the
    runtime modules with the packed functions.
    """

    def __init__(self, code: GraphCode, mod: IRModule, external: ExternalCode, target: Any) -> None:
        self.external, self.target = external, target
        own = {n: f for n, f in external.prim_funcs.items() if not _has_hook(f)}
        self.prim_funcs: dict[str, BaseFunc] = own
        self._packed = ExternalCode.of(external, {n: f for n, f in external.prim_funcs.items() if n not in own})
        self.modules = self._packed.runtime_modules(target)
        self._needs = dict(constants_of(m) for m in self.modules)
        symbols = {v.name_hint for v in mod.functions} - set(own)
        self.functions = {str(n.func_name): self._foreign(code, n) for n in code.nodes if n.func_name in symbols}

    def _foreign(self, code: GraphCode, node: GraphNode) -> Foreign:
        inputs = tuple(code.nodes[e.node].outputs[e.index] for e in node.inputs)
        names = self._needs.get(str(node.func_name), ())
        missing = [n for n in names if n not in self.external.constants]
        if missing:
            raise BuildError(f"the external function {node.func_name!r} needs the constants {', '.join(missing)}, which nobody gave")
        return Foreign(str(node.func_name), inputs, node.outputs, tuple(self.external.constants[n].numpy() for n in names))

    def renamed(self, code: GraphCode) -> GraphCode:
        """The graph with calls of the adapters."""
        if not self.functions:
            return code
        return code._replace(nodes=[_calling(n, self.functions[n.func_name].adapter) if n.func_name in self.functions else n for n in code.nodes])

    def attach(self, library: Module) -> Module:
        """Imports the modules with packed functions, and the constants they need."""
        return self._packed.attach(library, self.target) if self.functions else library

    # -- C

    def lowered(self) -> dict[str, BaseFunc]:
        """The loop programs as C kernels are made of them."""
        from ....driver.build_module import lower

        return {name: lower(func, name=name)[name] for name, func in self.prim_funcs.items()}  # type: ignore[arg-type]

    def c_adapters(self) -> list[CKernel]:
        """The adapters as C functions."""
        return [c_adapter(f) for f in self.functions.values()]

    def c_files(self) -> dict[str, str]:
        """The sources of the external functions, and the headers they need; BuildError for code that is not C."""
        wrong = [m for m in self.modules if not isinstance(m, CSourceModule)]
        if wrong:
            raise BuildError(f"the target c takes external functions as C code only: the module of kind {wrong[0].type_key!r} with {_names(wrong[0], self.functions)} is "
                             "not exportable to C; let the external compiler return runtime.CSourceModuleCreate(…), or build for the target llvm")
        sources = {f"lib{i + 2}{m.suffix}": m.get_source() for i, m in enumerate(self.modules)}
        return {**sources, **support_files(sources.values())} if self.functions else {}

    # -- LLVM

    def compiled(self) -> LoopPrograms:
        """The loop programs as object code."""
        if not self.prim_funcs:
            return LoopPrograms([], {})
        made: Any = compile_prim_funcs(self.prim_funcs, self.target)
        if any(k.workspace_bytes or k.workspace_bytes_per_task for k in made.kernels.values()):
            raise BuildError(f"the loop programs {', '.join(self.prim_funcs)} of an external compiler need scratch memory, which the ahead-of-time executor "
                             "plans for kernels only: allocate less inside, or build for another executor")
        return LoopPrograms(list(made.objects), {name: k.fast for name, k in made.kernels.items()})

    def llvm_adapters(self) -> str:
        """The adapters as LLVM text; constants have to be handed over by the runtime."""
        return _DL_TENSOR + "".join(llvm_adapter(f) for f in self.functions.values())

    def check_embedded(self) -> None:
        """BuildError for what an object file for a machine without an operating system cannot hold."""
        needy = [f.symbol for f in self.functions.values() if f.constants]
        if needy:
            raise BuildError(f"the external functions {', '.join(needy)} need constants, which an object file for the crt runtime does not hand over: make them "
                             "arguments (PartitionGraph(bind_constants=False)), or build for the target c")


def _has_hook(func: Any) -> bool:
    target = func.get_attr("target")
    return target is not None and target.kind.get_attr("TIRToRuntime") is not None


def _names(module: Module, functions: Any) -> str:
    return ", ".join(n for n in functions if module.implements_function(n, True)) or "no known function"


def _calling(node: GraphNode, name: str) -> GraphNode:
    return GraphNode(node.name, name, node.inputs, node.outputs, node.attrs, node.origin)


# -- C text


def c_adapter(func: Foreign) -> CKernel:
    """The adapter of one function in C."""
    count = len(func.inputs)
    parameters = [f"{'const ' if i < count else ''}void* a{i}" for i in range(len(func.tensors))]
    data = [f"(void*)a{i}" for i in range(len(func.tensors))]
    body = (_hand_over(func) if func.constants else "") + _call_text(func.symbol, func.tensors, data, "    ")
    externs = (_INCLUDE, f"int32_t {func.symbol}({_PACKED});", *([f"int32_t __init_{func.symbol}({_PACKED});"] if func.constants else []))
    constants = tuple((f"{func.symbol}_const{i}", np.ascontiguousarray(c)) for i, c in enumerate(func.constants))
    return CKernel(func.adapter, f"int32_t {func.adapter}({', '.join(parameters)})", body, f"Calls the external function {func.symbol}", 0, frozenset(), externs, False,
                   constants, tuple(i >= count for i in range(len(func.tensors))))


def _hand_over(func: Foreign) -> str:
    infos = [TensorInfo(tuple(c.shape), str(c.dtype)) for c in func.constants]
    call = _call_text(f"__init_{func.symbol}", infos, [f"(void*){func.symbol}_const{i}" for i in range(len(infos))], "        ")
    return f"    static int ready = 0;\n    if (!ready) {{\n{call}        ready = 1;\n    }}\n"


def _call_text(symbol: str, infos: Sequence[TensorInfo], data: Sequence[str], indent: str) -> str:
    """Tensors, and the call that is given them."""
    lines = ["{"]
    lines += [f"    int64_t shape{i}[{max(1, len(t.shape))}] = {{{', '.join(map(str, t.shape)) or '1'}}};" for i, t in enumerate(infos)]
    rows = [f"        {{{pointer}, {{kDLCPU, 0}}, {len(t.shape)}, {_dtype(t)}, shape{i}, 0, 0}}" for i, (t, pointer) in enumerate(zip(infos, data))]
    lines += [f"    DLTensor tensors[{len(infos)}] = {{\n" + ",\n".join(indent + r for r in rows) + f"\n{indent}    }};"]
    lines += [f"    TVMValue args[{len(infos)}], result;", f"    int codes[{len(infos)}], result_code = kTVMNullptr;",
              f"    for (int i = 0; i < {len(infos)}; ++i) {{ args[i].v_handle = &tensors[i]; codes[i] = kTVMDLTensorHandle; }}",
              f"    if ({symbol}(args, codes, {len(infos)}, &result, &result_code, 0) != 0) return -1;", "}"]
    return "".join(f"{indent}{line}\n" for line in lines)


def _dtype(info: TensorInfo) -> str:
    kind = DataType(info.dtype)
    return f"{{{kind.type_code}, {kind.bits}, {kind.lanes}}}"


# -- LLVM text

_DL_TENSOR = "%DLTensor = type { ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }\n"


def llvm_adapter(func: Foreign) -> str:
    """The adapter of one function in LLVM's language."""
    count = len(func.tensors)
    shapes = [f"@{func.symbol}_shape{i} = internal constant [{max(1, len(t.shape))} x i64] [{', '.join(f'i64 {d}' for d in t.shape) or 'i64 1'}]"
              for i, t in enumerate(func.tensors)]
    lines = [f"  %args = alloca [{count} x i64], align 8", f"  %codes = alloca [{count} x i32], align 4", "  %result = alloca i64, align 8",
             "  %code = alloca i32, align 4", "  store i32 4, ptr %code"]
    for i, tensor in enumerate(func.tensors):
        lines += _llvm_tensor(i, tensor, func.symbol)
    lines += [f"  %status = call i32 @{func.symbol}(ptr %args, ptr %codes, i32 {count}, ptr %result, ptr %code, ptr null)", "  ret i32 %status"]
    parameters = ", ".join([*(f"ptr %a{i}" for i in range(count)), "ptr %workspace"])
    head = f"declare i32 @{func.symbol}(ptr, ptr, i32, ptr, ptr, ptr)\n"
    return head + "\n".join([*shapes, f"define i32 @{func.adapter}({parameters}) {{", "entry:", *lines, "}", ""])


def _llvm_tensor(i: int, info: TensorInfo, symbol: str) -> list[str]:
    kind = DataType(info.dtype)
    fields = [(0, f"ptr %a{i}"), (1, "i32 1"), (2, "i32 0"), (3, f"i32 {len(info.shape)}"), (4, f"i8 {kind.type_code}"), (5, f"i8 {kind.bits}"),
              (6, f"i16 {kind.lanes}"), (7, f"ptr @{symbol}_shape{i}"), (8, "ptr null"), (9, "i64 0")]
    lines = [f"  %t{i} = alloca %DLTensor, align 8"]
    for at, value in fields:
        lines += [f"  %t{i}_{at} = getelementptr %DLTensor, ptr %t{i}, i32 0, i32 {at}", f"  store {value}, ptr %t{i}_{at}"]
    return [*lines, f"  %v{i} = getelementptr i64, ptr %args, i32 {i}", f"  store ptr %t{i}, ptr %v{i}",
            f"  %c{i} = getelementptr i32, ptr %codes, i32 {i}", f"  store i32 7, ptr %c{i}"]


__all__ = ["Foreign", "ForeignCode", "c_adapter", "llvm_adapter"]
