"""The TE compiler: chooses implementations, lowers primitive functions to ``PrimFunc``s and caches them.

``get()`` is the process-wide compiler that upstream's API asks for; every other user makes a ``TECompiler`` of its own.
"""
from __future__ import annotations

import logging
import threading
from typing import Any, NamedTuple, Sequence

from ...autotvm import env, task
from ...ir.expr import Any as AnyDim, GlobalVar, IntImm
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.structural import structural_equal, structural_hash
from ...ir.transform import PassContext
from ...support.errors import AnchorlegError, ArgumentError, BuildError, TypeMismatchError, UnsupportedOpError
from ...support.names import NameSupply
from ..expr import Call
from ..function import Function
from ..transform.fuse_ops import is_static
from . import te_lowering
from .utils import mangle_module_name

logger = logging.getLogger("te_compiler")
tuning_logger = logging.getLogger("autotvm")


class LoweredOutput:
    """What one operator call became: TE tensors, and the implementation that made them."""

    def __init__(self, outputs: Sequence[Any], implement: Any) -> None:
        self.outputs, self.implement = list(outputs), implement


class CCacheKey:
    """A primitive function and the target it is for; equal when both are structurally equal."""

    def __init__(self, source_func: Function, target: Any) -> None:
        self.source_func, self.target = source_func, target
        self._hash = structural_hash(source_func) ^ hash(str(target))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, CCacheKey) and self._hash == other._hash and str(self.target) == str(other.target)
                and structural_equal(self.source_func, other.source_func))


class CCacheValue:
    """A cached function and how often it was asked for."""

    def __init__(self, cached_func: CachedFunc) -> None:
        self.cached_func, self.use_count = cached_func, 0


class CachedFunc(NamedTuple):
    """A lowered primitive function."""

    target: Any
    prim_fn_var: GlobalVar
    inputs: list[Any]
    outputs: list[Any]
    schedule: Any
    prim_func: Any
    constants: dict[Any, Any]

    def same_as(self, other: object) -> bool:
        """Whether both are the very same object."""
        return self is other

    @property
    def funcs(self) -> IRModule:
        """The lowered function in a module of its own."""
        return IRModule({self.prim_fn_var: self.prim_func})


def get_valid_implementations(op: Op, attrs: Any, inputs: list[Any], out_type: Any, target: Any) -> list[Any]:
    """The implementations whose conditions hold, in order of registration.

    Raises UnsupportedOpError when the operator has no strategy for any target.
    """
    strategy_of = op.get_attr("FTVMStrategy")
    if strategy_of is None:
        _load_strategies()
        strategy_of = op.get_attr("FTVMStrategy")
    if strategy_of is None:
        raise UnsupportedOpError(f"{op.name} doesn't have an FTVMStrategy registered: register one with "
                                 f"relay.op.register_strategy({op.name!r}, ...)")
    with target:
        strategy = strategy_of(attrs, inputs, out_type, target)
    return [impl for spec in strategy.specializations if _holds(spec.condition) for impl in spec.implementations]


def _load_strategies() -> None:
    from ..op.strategy import load_all

    load_all()


def _holds(condition: Any) -> bool:
    if not condition:
        return True
    from ... import arith

    analyzer = arith.Analyzer()
    simplified = [analyzer.canonical_simplify(c) if not isinstance(c, bool) else c for c in condition.clauses]
    return all(c is True or isinstance(c, IntImm) and c.value != 0 for c in simplified)


def select_implementation(op: Op, attrs: Any, inputs: list[Any], out_type: Any, target: Any, use_autotvm: bool = True) -> tuple[Any, list[Any]]:
    """The implementation to use and its output tensors.

    Tuning records of the current dispatch context decide among tunable implementations (lowest cost); otherwise the
    highest ``plevel`` wins.
    """
    implementations = get_valid_implementations(op, attrs, inputs, out_type, target)
    if not implementations:
        raise BuildError(f"No valid {op.name} implementations for {target}: inputs {_describe(inputs)}, attributes {attrs}")
    with target:
        return _select(op, implementations, attrs, inputs, out_type, target, use_autotvm and _tuning_applies())


def _select(op: Op, implementations: list[Any], attrs: Any, inputs: list[Any], out_type: Any, target: Any, tuned_first: bool) -> tuple[Any, list[Any]]:
    tuned = _look_up_records(op, implementations, attrs, inputs, out_type, target) if tuned_first else _NOT_TUNABLE
    if tuned.best is not None:
        return tuned.best, tuned.outputs[tuned.best]
    best = max(implementations, key=lambda impl: impl.plevel)
    if tuned.workloads.get(best) is not None:
        _say_not_tuned(target, tuned.workloads[best])
    logger.info("Using %s for %s based on highest priority (%d)", best.name, op.name, best.plevel)
    return best, tuned.outputs[best] if best in tuned.outputs else best.compute(attrs, inputs, out_type)


def _describe(inputs: list[Any]) -> str:
    return ", ".join(f"{t.dtype}{[_plain(d) for d in t.shape]}" for t in inputs) or "none"


def _plain(dim: Any) -> Any:
    return dim.value if isinstance(dim, IntImm) else str(dim)


class _Tuned(NamedTuple):
    """What tuning says: the implementation of the lowest recorded cost, and what was computed while asking."""

    best: Any
    outputs: dict[Any, list[Any]]
    workloads: dict[Any, Any]


_NOT_TUNABLE = _Tuned(None, {}, {})


def _tuning_applies() -> bool:
    """Whether records may decide: some task is registered, and no other scheduler has been asked for."""
    context = PassContext.current()
    if context.get("relay.backend.use_auto_scheduler", False) or context.get("relay.backend.use_meta_schedule", False):
        return False
    return bool(task.TASK_TABLE)


def _look_up_records(op: Op, implementations: list[Any], attrs: Any, inputs: list[Any], out_type: Any, target: Any) -> _Tuned:
    """Runs the implementations' computes, and asks the dispatch context about those that are tunable."""
    outputs: dict[Any, list[Any]] = {}
    workloads: dict[Any, Any] = {}
    best, lowest = None, None
    context, scope = task.DispatchContext.current, env.GLOBAL_SCOPE
    silent, scope.silent = scope.silent, True
    try:
        for impl in implementations:
            outputs[impl] = impl.compute(attrs, inputs, out_type)
            workloads[impl] = task.get_workload(outputs[impl])
            config = context.query(target, workloads[impl]) if workloads[impl] is not None and context is not None else None
            if config is None or config.is_fallback:
                continue
            logger.info("Implementation %s for %s has cost %.2e", impl.name, op.name, config.cost)
            if lowest is None or config.cost < lowest:
                best, lowest = impl, config.cost
    finally:
        scope.silent = silent
    if best is not None:
        logger.info("Using %s for %s based on lowest cost (%.2e)", best.name, op.name, lowest)
    return _Tuned(best, outputs, workloads)


def _say_not_tuned(target: Any, workload: Any) -> None:
    """Once per workload to the log; once per process as a notice."""
    message = f"Cannot find tuning records for:\n    target={target}\n    key={workload}\nTVM will apply a default schedule which may negatively impact performance."
    said = task.DispatchContext.warning_messages
    if env.GLOBAL_SCOPE.silent or message in said:
        return
    notice = ("One or more operators have not been tuned. Please tune your model for better performance. "
              "Use DEBUG logging level to see more details.")
    if notice not in said:
        said.add(notice)
        tuning_logger.warning(notice)
    said.add(message)
    tuning_logger.debug(message)


def get_shape(shape: Sequence[Any]) -> list[Any]:
    """Dimensions as upstream's callers expect them: int32 constants, ``Any`` as a fresh size variable."""
    from ... import te

    result: list[Any] = []
    for dim in shape:
        if isinstance(dim, (int, IntImm)):
            value = int(dim)
            result.append(IntImm("int32" if -(2**31) <= value < 2**31 else "int64", value))
        else:
            result.append(te.size_var("any_dim", "int32") if isinstance(dim, AnyDim) else dim)
    return result


def lower_call(call: Call, inputs: list[Any], target: Any, otype: Any = None) -> LoweredOutput:
    """One operator call as TE tensors, by the implementation chosen for it."""
    out_type = otype if otype is not None else call.checked_type
    static = is_static(call.checked_type) and all(is_static(a.checked_type) for a in call.args)
    tracing = task.TaskExtractEnv.current
    paused = tracing is not None and tracing.tracing and tracing.wanted_relay_ops is not None and call.op not in tracing.wanted_relay_ops
    if paused:
        tracing.tracing = False  # type: ignore[union-attr]
    try:
        implementation, outputs = select_implementation(call.op, call.attrs, inputs, out_type, target, use_autotvm=static)  # type: ignore[arg-type]
    finally:
        if paused:
            tracing.tracing = True  # type: ignore[union-attr]
    return LoweredOutput(outputs, implementation)


def _select_for_lowering(call: Call, inputs: list[Any], target: Any, otype: Any) -> tuple[Any, list[Any]]:
    lowered = lower_call(call, inputs, target, otype)
    return lowered.implement, lowered.outputs


class TECompiler:
    """Lowers primitive functions once per (structure, target)."""

    def __init__(self) -> None:
        self._cache: dict[CCacheKey, CCacheValue] = {}
        self._names: dict[str, NameSupply] = {}
        self._lock = threading.RLock()

    def lower(self, source_func: Function | CCacheKey, target: Any = None, mod_name: str = "default") -> CachedFunc:
        """The lowered function, named after ``mod_name``.  Errors carry the function's text."""
        return self.lower_as(source_func, target, mangle_module_name(mod_name))

    def lower_as(self, source_func: Function | CCacheKey, target: Any, prefix: str) -> CachedFunc:
        """The lowered function; ``prefix`` is put before its name as it is."""
        key = _cache_key(source_func, target)
        with self._lock:
            value = self._cache.get(key)
            if value is None:
                value = self._cache[key] = CCacheValue(self._lower_new(key, prefix))
            value.use_count += 1
            return value.cached_func

    def _lower_new(self, key: CCacheKey, prefix: str) -> CachedFunc:
        try:
            te_func = te_lowering.to_tensors(key.source_func, key.target, _select_for_lowering)
            schedule = te_lowering.make_schedule(te_func, key.target)
            name = self._names.setdefault(prefix, NameSupply()).fresh(f"{prefix}_{te_func.name}")
            prim_func = lower_schedule(te_func, schedule, name, key.target)
        except AnchorlegError as exc:
            raise _with_text(exc, key.source_func) from exc
        except RecursionError as exc:
            raise _with_text(BuildError(f"lowering went too deep: {exc}"), key.source_func) from exc
        return CachedFunc(key.target, GlobalVar(name), te_func.inputs, te_func.outputs, schedule, prim_func, te_func.constants)

    def jit(self, source_func: Function | CCacheKey, target: Any = None) -> Any:
        """The function compiled: a PackedFunc that takes the inputs' and outputs' NDArrays."""
        from .kernels import jit_function

        key = _cache_key(source_func, target)
        return jit_function(self.lower(key), key.target)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._cache.clear()
            self._names.clear()

    def items(self) -> list[tuple[CCacheKey, CCacheValue]]:
        """The cached functions with their use counts."""
        with self._lock:
            return list(self._cache.items())

    def stats(self) -> dict[str, int]:
        """How many functions are cached, how often one was asked for, and how often the cache could answer."""
        with self._lock:
            uses = sum(v.use_count for v in self._cache.values())
            return {"functions": len(self._cache), "requests": uses, "hits": uses - len(self._cache)}

    def dump(self) -> None:
        """Prints what is cached."""
        for key, value in self.items():
            print(f"{value.cached_func.prim_fn_var.name_hint} for {key.target}, used {value.use_count} times")


def with_schedule(func: Function, target: Any) -> Function:
    """A primitive function with its TE schedule as the attribute ``schedule``, when schedules keep their steps (``te.keep_schedule_record``)."""
    if not PassContext.current().get("te.keep_schedule_record", False):
        return func
    return func.with_attr("schedule", TECompiler().lower(func, target).schedule)


def lower_schedule(te_func: te_lowering.TEFunction, schedule: Any, name: str, target: Any) -> Any:
    """TE schedule → flat PrimFunc under ``target``."""
    from ...driver.build_module import lower

    args = [*te_func.inputs, *te_func.constants, *te_func.outputs]
    with target:
        mod = lower(schedule, args, name=name)
    return mod[name]


def _cache_key(source_func: Function | CCacheKey, target: Any) -> CCacheKey:
    if isinstance(source_func, CCacheKey):
        return source_func
    if not isinstance(source_func, Function):
        raise TypeMismatchError(f"expected a relay.Function or a CCacheKey, got {type(source_func).__name__}")
    from ...target.target import Target

    if target is None:
        target = Target.current(allow_none=True)
        if target is None:
            raise ArgumentError("need a target when source_func is a Function: pass target=...")
    return CCacheKey(_typed(source_func), Target(target) if not isinstance(target, Target) else target)


def _typed(func: Function) -> Function:
    """The function with inferred types."""
    if func.body._checked_type is not None and all(p._checked_type is not None for p in func.params):
        return func
    from ..transform.infer_type import infer_type

    return infer_type(func)


def _with_text(exc: AnchorlegError, func: Function) -> AnchorlegError:
    from ..text.printer import astext

    text = astext(func, show_meta_data=False)
    shown = text if len(text) < 4000 else text[:4000] + "\n…"
    return type(exc)(f"{exc}\nwhile compiling the function\n{shown}")


_GLOBAL: list[TECompiler] = []


def get() -> TECompiler:
    """The process-wide TE compiler."""
    if not _GLOBAL:
        _GLOBAL.append(TECompiler())
    return _GLOBAL[0]


def lower_to_primfunc(relay_func: Function, target: Any) -> Any:
    """A primitive function (made by FuseOps) as a PrimFunc for ``target``."""
    return TECompiler().lower(relay_func, target).prim_func


__all__ = ["LoweredOutput", "CCacheKey", "CCacheValue", "CachedFunc", "TECompiler", "get", "get_shape", "get_valid_implementations",
           "lower_call", "lower_to_primfunc", "select_implementation"]
