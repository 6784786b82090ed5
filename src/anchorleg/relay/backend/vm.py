"""``relay.vm``: compiling for the virtual machine, which runs dynamic shapes and control flow."""
from __future__ import annotations

import logging
from typing import Any, Callable, Mapping, Sequence

from ...ir.expr import BaseFunc, GlobalVar, RelayExpr
from ...ir.module import IRModule
from ...ir.structural import structural_hash
from ...ir.transform import get_pass
from ...runtime import ndarray
from ...runtime.vm.executable import Executable, PackedEntry
from ...support.cache import open_cache
from ...support.errors import AnchorlegError, ArgumentError, TypeMismatchError
from ...target.build.c import is_c, require_compiler
from ..analysis.variables import free_vars
from ..function import Function
from ..op.shape_func.registry import flatten_types
from ..transform.bind import bind_params_by_name
from ..transform.fuse_ops import is_static
from . import vm_pipeline
from .external import generate_external
from .interpreter import Executor
from .kernels import KernelBuilder, kernel_key
from .placement import main_target, target_of
from .vm_types import TypeSpecs
from .vm_codegen import Context, compile_functions

logger = logging.getLogger("vm")


def compile(mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None,
            progress: Callable[[str, int, int], None] | None = None) -> Executable:
    """An executable of a module for the virtual machine.

    Parameters
    ----------
    mod: the module (or a function); ``main`` is where programs begin.
    target: what to compile for, e.g. ``"llvm"``; default: the current target.  A list or a dict has one for each kind of device that the
        program places values on (``relay.annotation.on_device``).
    params: values of ``main``'s parameters that do not change.
    progress: called as ``progress(kernel name, done, total)``.
    """
    compiler = VMCompiler()
    compiler.progress = progress
    if params:
        compiler.set_params(params)
    compiler.lower(mod, target, target_host)
    compiler.codegen()
    return compiler.get_exec()


def _module_of(mod: Any) -> IRModule:
    if isinstance(mod, Function):
        mod = IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise TypeMismatchError(f"expected an IRModule to compile, got {type(mod).__name__}")
    plain = {v: f for v, f in mod.functions.items() if isinstance(f, RelayExpr) and not isinstance(f, BaseFunc)}
    if plain:  # expressions that somebody put in the place of functions
        mod = mod.copy()
        for v, f in plain.items():
            mod[v] = Function(free_vars(f), f)
    return mod


def _targets(target: Any, host: Any = None) -> tuple[list[Any], list[Any]]:
    """The targets that kernels are compiled for, and those of external compilers."""
    from ...target.target import Target

    if isinstance(target, Mapping) and len(target) == 1:
        target = next(iter(target.values()))
    ordinary, external = Target.split_external(Target.canon_multi_target_and_host(Target.target_or_current(target), host))
    return list(dict.fromkeys(ordinary)), external


class _Kernels:
    """The packed functions of one compilation: numbers, names, kernels being compiled."""

    def __init__(self, target: Any, builder: KernelBuilder) -> None:
        self.target, self.builder = target, builder
        self.entries: list[PackedEntry] = []
        self.functions: dict[str, Function] = {}
        self.keys: dict[int, str] = {}
        self.names: dict[str, int] = {}
        self.hosts: dict[int, Function] = {}
        self._numbers: dict[Any, int] = {}

    def request(self, func: Function, kind: str, program: Any) -> int:
        """The number of a packed function; equal ones are one."""
        if kind == "external":
            return self._external(func, *program)
        if kind == "shape":
            return self._shape(func, program)
        if kind == "kernel":
            return self._kernel(func)
        return self._host(func, "host_")

    def _add(self, key: Any, name: str, kind: str, func: Function, payload: Any = None) -> int:
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        inputs = sum(len(flatten_types(p.checked_type)) for p in func.params)
        outputs = len(flatten_types(func.ret_type if func.ret_type is not None else func.body.checked_type))
        self.entries.append(PackedEntry(f"{name}_{count}" if count else name, kind, inputs, outputs, (), payload))
        self._numbers[key] = len(self.entries) - 1
        return self._numbers[key]

    def _external(self, var: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        """A function that is compiled elsewhere; with the shapes of its tensors, when all are known, the machine calls native code itself."""
        types = (*inputs, *outputs)
        shapes = [[list(t.concrete_shape), t.dtype] for t in types] if all(map(is_static, types)) else None
        key = ("external", var.name_hint, str(shapes))
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.names[var.name_hint] = 1
            self.entries.append(PackedEntry(var.name_hint, "external", len(inputs), len(outputs), (), shapes))
        return self._numbers[key]

    def _shape(self, func: Function, program: Any) -> int:
        key = ("shape", program, len(func.params), str(func.ret_type))
        if key in self._numbers:
            return self._numbers[key]
        payload = {"steps": [list(s) for s in program.steps], "texts": list(program.texts)}
        return self._add(key, f"shape_func_{_name(func)}", "shape", func, payload)

    def _kernel(self, func: Function) -> int:
        target = target_of(func, self.target)
        key = kernel_key(func, target)
        if key in self._numbers:
            return self._numbers[key]
        try:
            self.builder.request(func, target)
        except Exception as exc:  # whatever a compute or schedule makes of sizes that are not known: the rules can do it
            if not isinstance(exc, AnchorlegError) and _all_known(func):
                raise
            logger.info("no kernel for %s: %s: %s", _name(func), type(exc).__name__, exc)
            self._numbers[key] = self._host(func, "host_")
            return self._numbers[key]
        number = self._add(key, f"vm_mod_{_name(func)}", "kernel", func)
        self.keys[number] = key
        self.functions[self.entries[number].name] = func
        return number

    def _host(self, func: Function, prefix: str) -> int:
        number = self._add(("host", id(func)), prefix + _name(func), "host", func)
        self.hosts[number] = func
        return number

    def finish(self, progress: Callable[[str, int, int], None] | None) -> tuple[list[PackedEntry], Any]:
        """The packed functions, and the library of kernels."""
        from .executor_factory import compiled_module
        from .vm_host import host_payload

        entries, kernels = list(self.entries), {}
        for done, (number, key) in enumerate(self.keys.items()):
            kernel = self.builder.result(key)
            name = entries[number].name
            kernels[name] = kernel
            entries[number] = entries[number]._replace(implicit=tuple((p, d) for p, _, d in kernel.implicit))
            if progress is not None:
                progress(name, done + 1, len(self.keys))
        for number, func in self.hosts.items():
            entries[number] = entries[number]._replace(payload=host_payload(func))
        return entries, compiled_module(kernels, self.target)


def _all_known(func: Function) -> bool:
    """Whether every size in a primitive function is known."""
    return is_static(func.ret_type) and all(is_static(p.checked_type) for p in func.params)


def _name(func: Function) -> str:
    from ...ir.op import Op
    from ...ir.visit import post_order
    from ..expr import Call
    from ..op.shape_func.evaluate import children
    from .te_lowering import shorten

    names = [n.op.name.replace(".", "_") for n in post_order(func.body, children) if isinstance(n, Call) and isinstance(n.op, Op)]
    return shorten(["fused", *names])


def _labelled(mod: IRModule) -> IRModule:
    """The module with each function's structural hash as its attribute ``hash``, by which tools tell functions apart."""
    return mod.with_functions({v: f.with_attr("hash", f"{structural_hash(f):016x}") for v, f in mod.functions.items()})


class VMCompiler:
    """Compiles step by step: ``lower`` (or ``optimize`` alone), ``codegen``, ``get_exec``."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._lowered: tuple[IRModule, Any] | None = None
        self._exec: Executable | None = None
        self._functions: dict[str, Function] = {}
        self.progress: Callable[[str, int, int], None] | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Binds parameters of ``main`` to values."""
        for name, value in params.items():
            self._params[name] = value if isinstance(value, ndarray.NDArray) else ndarray.array(value)

    def get_params(self) -> dict[str, Any]:
        """The parameters that were set."""
        return dict(self._params)

    def _bound(self, mod: Any) -> IRModule:
        mod = _module_of(mod)
        if not self._params:
            return mod
        bound = mod.copy()
        bound["main"] = bind_params_by_name(mod["main"], self._params)
        return bound

    def optimize(self, mod: Any, target: Any = None, target_host: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
        """(the module with explicit memory, the parameters): everything but code generation."""
        if params:
            self.set_params(params)
        targets, external = _targets(target, target_host)
        chosen = main_target(targets)
        with chosen:
            lowered = vm_pipeline.lower(vm_pipeline.optimise(self._bound(mod), targets), external)
        self._lowered = (lowered, chosen)
        return _labelled(lowered), self.get_params()

    def lower(self, mod: Any, target: Any = None, target_host: Any = None) -> None:
        """Optimises the module and makes its memory explicit."""
        self.optimize(mod, target, target_host)

    def codegen(self) -> None:
        """Makes instructions and compiles kernels."""
        if self._lowered is None:
            raise ArgumentError("codegen: call lower first")
        mod, target = self._lowered
        if is_c(target):
            require_compiler()  # before a kernel that cannot be made is left to the operators' rules
        with target, KernelBuilder(cache=open_cache("kernels")) as builder:
            mod, external = generate_external(mod)
            kernels = _Kernels(target, builder)
            context = Context(mod, kernels.request)
            functions = compile_functions(context)
            entries, lib = kernels.finish(self.progress)
            external.attach(lib, target)
        self._functions = kernels.functions
        specs = TypeSpecs(mod)
        types = {v.name_hint: [specs.spec(p.checked_type) for p in _params_of(mod.functions[v])] for v in context.functions}
        self._exec = Executable(functions, context.constants, entries, lib, types, None, context.devices, context.constant_devices, specs.data)

    def get_exec(self) -> Executable:
        """The executable that `codegen` made."""
        if self._exec is None:
            raise ArgumentError("get_exec: call codegen first")
        return self._exec


def _params_of(func: Any) -> list[Any]:
    inner = func.body if func.get_attr("Closure") and isinstance(func.body, Function) else None
    return [*func.params, *(inner.params if inner is not None else ())]


class VMExecutor(Executor):
    """Runs programs by the virtual machine, for ``relay.create_executor("vm")``."""

    def __init__(self, mod: IRModule, device: Any, target: Any) -> None:
        self.mod, self.device, self.target = mod, device, target
        self.executable: Executable | None = None
        self.vm: Any = None

    def _make_executor(self, expr: RelayExpr | None = None) -> Callable[..., Any]:
        from ...runtime.vm import VirtualMachine

        mod = self._module()
        if expr is not None:
            mod = mod.copy()
            mod["main"] = mod[expr.name_hint] if isinstance(expr, GlobalVar) else expr  # type: ignore[assignment]
        mod = get_pass("InferType")(mod)
        main = mod["main"]
        executable = compile(mod, self.target)
        machine = VirtualMachine(executable, self.device)
        self.executable, self.vm = executable, machine

        def run(*args: Any, **kwargs: Any) -> Any:
            return machine.run(*self._convert_args(main, args, kwargs))

        return run


__all__ = ["VMCompiler", "VMExecutor", "compile"]
