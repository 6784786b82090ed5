"""Kernels: primitive functions as object code, made once and kept across processes.

A kernel's key is the digest of everything it is made from: the primitive function's canonical text, the target with
the processor's features, the options in force and the compiler's own sources.  Python lowers; LLVM compiles in worker
threads meanwhile; finished object code goes to the persistent cache, from where the next build takes it without
touching TE or LLVM.
"""
from __future__ import annotations

import functools
import hashlib
import json
import os
import struct
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple

from ...autotvm import task
from ...ir.expr import IntImm
from ...ir.op import Op
from ...ir.transform import PassContext
from ...ir.visit import post_order
from ...support.cache import Cache
from ...support.errors import InternalError
from ...target.build.c import CText, c_text, compiler_name, is_c, library_text, object_code, require_compiler
from ...tir.function import PrimFunc
from ..expr import Call, Constant, Tuple, TupleGetItem, Var
from ..function import Function
from . import te_compiler
from .te_lowering import flatten_tensor_types

_HEADER = struct.Struct("<I")


class CompiledKernel(NamedTuple):
    """Object code of one kernel and how to call it.

    ``symbol`` is the packed entry, ``symbol + "__fast"`` the fast one (the only one without ``has_packed``); the workspace sizes are in
    bytes; ``implicit`` lists the sizes that the fast entry takes after the pointers: (parameter, ``"shape"``, dimension).
    """

    key: str
    name: str
    symbol: str
    code: bytes
    workspace_bytes: int
    workspace_bytes_per_task: int
    arg_types: tuple[str, ...]
    implicit: tuple[tuple[int, str, int], ...] = ()
    has_packed: bool = True

    @property
    def fast_symbol(self) -> str:
        """The entry that takes raw data pointers."""
        return f"{self.symbol}__fast"

    def to_bytes(self) -> bytes:
        """The kernel as a cache entry."""
        head = json.dumps({"name": self.name, "symbol": self.symbol, "workspace": self.workspace_bytes,
                           "per_task": self.workspace_bytes_per_task, "args": self.arg_types, "implicit": self.implicit,
                           "packed": self.has_packed}).encode()
        return _HEADER.pack(len(head)) + head + self.code

    @staticmethod
    def from_bytes(key: str, data: bytes) -> CompiledKernel:
        """A cache entry as a kernel."""
        (size,) = _HEADER.unpack_from(data)
        head = json.loads(data[_HEADER.size: _HEADER.size + size])
        return CompiledKernel(key, head["name"], head["symbol"], data[_HEADER.size + size:], head["workspace"], head["per_task"],
                              tuple(head["args"]), tuple(tuple(i) for i in head["implicit"]), bool(head["packed"]))


class _Describer:
    """Numbers the values of a primitive function and writes them down, one line each."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.symbols: dict[int, int] = {}
        self.lines: list[str] = []

    def add(self, node: Any, what: str) -> None:
        """The next value."""
        self.numbers[id(node)] = len(self.numbers)
        self.lines.append(f"{what} : {self.type_text(node.checked_type)}")

    def type_text(self, ty: Any) -> str:
        """A tensor or tuple type; dimensions not known are numbered, since equal ones share a size."""
        return " ".join(f"{t.dtype}[{', '.join(map(self._dim, t.dims))}]" for t in flatten_tensor_types(ty))

    def _dim(self, dim: Any) -> str:
        if isinstance(dim, int):
            return str(dim)
        if not dim.children():
            return str(dim.value) if isinstance(dim, IntImm) else f"?{self.symbols.setdefault(id(dim), len(self.symbols))}"
        return f"{type(dim).__name__}({', '.join(map(self._dim, dim.children()))})"  # a formula of other sizes, not deep


def canonical_text(func: Function) -> str:
    """A primitive function as text that is equal for functions that compile to the same kernel."""
    describer = _Describer()
    for param in func.params:
        describer.add(param, "param")
    for node in post_order(func.body, expression_children):
        if id(node) not in describer.numbers:
            describer.add(node, _describe(node, describer.numbers))
    return "\n".join([*describer.lines, f"return {describer.numbers[id(func.body)]}"])


def expression_children(node: Any) -> tuple[Any, ...]:
    """What evaluation descends into inside a primitive function."""
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Tuple):
        return node.fields
    return (node.tuple_value,) if isinstance(node, TupleGetItem) else ()


def _describe(node: Any, numbers: dict[int, int]) -> str:
    if isinstance(node, Call) and isinstance(node.op, Op):
        return f"{node.op.name}({', '.join(str(numbers[id(a)]) for a in node.args)}) {node.attrs!r}"
    if isinstance(node, Tuple):
        return f"tuple({', '.join(str(numbers[id(f)]) for f in node.fields)})"
    if isinstance(node, TupleGetItem):
        return f"field({numbers[id(node.tuple_value)]}, {node.index})"
    if isinstance(node, Constant):
        return f"const {node.data.numpy()[()]!r}" if not node.data.shape else "const tensor"
    if isinstance(node, Var):
        raise InternalError(f"free variable {node.name_hint!r} in a primitive function")
    raise InternalError(f"a primitive function holds a {type(node).__name__}")


@functools.lru_cache(maxsize=None)
def compiler_fingerprint() -> str:
    """A digest of the compiler's own sources and of LLVM's version: another compiler, another cache entry."""
    from importlib.metadata import version

    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(version("llvmlite").encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel_key(func: Function, target: Any) -> str:
    """The digest that names the kernel of ``func`` on ``target`` under the current options."""
    from ...target.cpu import resolve_cpu

    options = {k: repr(v) for k, v in PassContext.current().config.items() if k.startswith(("tir.", "relay.backend"))}
    machine = compiler_name() if is_c(target) else resolve_cpu(target).key
    parts = [canonical_text(func), str(target), machine, json.dumps(options, sort_keys=True), compiler_fingerprint()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_reproducible(func: Function) -> bool:
    """Whether the kernel's key says all it is made from, so that another process may take it from the cache.

    Not so when an operator's strategy or compute is a user's own, when tuning records are in force, or when an option holds a
    function: none of these is part of the key.
    """
    if any(not _is_plain(v) for v in PassContext.current().config.values()):
        return False
    if task.TASK_TABLE and type(task.DispatchContext.current) is not task.FallbackContext:
        return False
    calls = [node for node in post_order(func.body, expression_children) if isinstance(node, Call) and isinstance(node.op, Op)]
    operators = {c.op for c in calls} | {Op.get(c.attrs.op) for c in calls if c.op.name == "vm.output_shapes"}  # type: ignore[union-attr]
    return all(map(_is_ours, operators))  # type: ignore[arg-type]


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, (list, tuple)) else value is None or isinstance(value, (bool, int, float, str))


def _is_ours(op: Op) -> bool:
    """Whether everything that computes the operator is of this package (what is not loaded yet is)."""
    rules = [op.get_attr("FTVMStrategy"), op.get_attr("FTVMCompute"), op.get_attr("FShapeFunc")]
    for rule in [r for r in rules if r is not None]:
        rules += [getattr(rule, "fdefault", None), getattr(rule, "source_rule", None), *getattr(rule, "dispatch_dict", {}).values()]
    package = __name__.partition(".")[0]
    return all(r is None or str(getattr(r, "__module__", "")).partition(".")[0] == package for r in rules)


class KernelBuilder:
    """Collects the kernels of one build: lowers in this thread, compiles in others.

    Parameters
    ----------
    compiler: the TE compiler that lowers functions.
    cache: where object code persists; None to keep nothing.
    """

    def __init__(self, compiler: te_compiler.TECompiler | None = None, cache: Cache | None = None) -> None:
        self.compiler = compiler or te_compiler.TECompiler()
        self.cache = cache
        self._pending: dict[str, Future[CompiledKernel]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> KernelBuilder:
        return self

    def __exit__(self, *exc: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=exc[0] is not None)

    def request(self, func: Function, target: Any) -> str:
        """Starts the kernel of a primitive function; returns its key."""
        key = kernel_key(func, target)
        if key not in self._pending:
            cache = self.cache if is_reproducible(func) else None
            self._pending[key] = _cached(cache, key) or self._start(key, func, target, cache)
        return key

    def result(self, key: str) -> CompiledKernel:
        """The finished kernel (waits for it)."""
        return self._pending[key].result()

    def _start(self, key: str, func: Function, target: Any, cache: Cache | None) -> Future[CompiledKernel]:
        from ...target.codegen.llvm import emit_kernel

        if is_c(target):
            require_compiler()
        lowered = self.compiler.lower(func, target)
        symbol, name = f"al_{key[:20]}", lowered.prim_fn_var.name_hint
        prim_func = lowered.prim_func.with_attr("global_symbol", symbol)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1))
        if is_c(target):
            return self._pool.submit(self._finish_c, key, name, symbol, c_text(prim_func, symbol), cache)
        return self._pool.submit(self._finish, key, name, emit_kernel(prim_func, target), target, cache)

    def _finish_c(self, key: str, name: str, symbol: str, emitted: CText, cache: Cache | None) -> CompiledKernel:
        made = CompiledKernel(key, name, symbol, object_code(emitted.text), emitted.workspace_bytes, 0, emitted.arg_types, (), False)
        return _kept(made, cache)

    def _finish(self, key: str, name: str, emitted: Any, target: Any, cache: Cache | None) -> CompiledKernel:
        from ...target.build.llvm import compile_text

        code = compile_text(emitted.ir_text, target)
        return _kept(CompiledKernel(key, name, emitted.symbol, code, emitted.workspace_bytes, emitted.workspace_bytes_per_task,
                                    tuple(emitted.arg_types), tuple(emitted.implicit)), cache)


def _kept(kernel: CompiledKernel, cache: Cache | None) -> CompiledKernel:
    """A finished kernel, put into the cache."""
    if cache is not None:
        cache.put(kernel.key, kernel.to_bytes())
    return kernel


def _cached(cache: Cache | None, key: str) -> Future[CompiledKernel] | None:
    data = cache.get(key) if cache is not None else None
    if data is None:
        return None
    done: Future[CompiledKernel] = Future()
    done.set_result(CompiledKernel.from_bytes(key, data))
    return done


def kernel_sources(functions: Mapping[str, Function], target: Any) -> dict[str, Callable[[], str]]:
    """The kernels' C (``c``), or LLVM IR (``ll``) and assembly (``asm``), as functions that make the text when asked, as this build would."""
    context = PassContext.current()

    def lowered(func: Function, name: str) -> PrimFunc:
        return te_compiler.TECompiler().lower(func, target).prim_func.with_attr("global_symbol", name)

    def ir(func: Function, name: str) -> str:
        from ...target.codegen.llvm import emit_kernel

        return emit_kernel(lowered(func, name), target).ir_text

    def c() -> str:
        with context:
            return library_text({name: lowered(func, name) for name, func in functions.items()})

    def texts(convert: Callable[[str], str]) -> str:
        with context:
            return "\n".join(convert(ir(func, name)) for name, func in functions.items())

    def assembly() -> str:
        from ...target.build.llvm import assembly_of

        return texts(lambda text: assembly_of(text, target))

    return {"c": c} if is_c(target) else {"ll": lambda: texts(str), "asm": assembly}


def jit_function(lowered: te_compiler.CachedFunc, target: Any) -> Any:
    """A lowered function as a callable PackedFunc."""
    from ...runtime.native import NativeLibrary, packed_function
    from ...target.build.llvm import compile_text
    from ...target.codegen.llvm import emit_kernel

    name = lowered.prim_fn_var.name_hint
    emitted = emit_kernel(lowered.prim_func.with_attr("global_symbol", name), target)
    library = NativeLibrary.from_objects([compile_text(emitted.ir_text, target)], [name])
    return packed_function(library, name)
