"""The TE compiler: chooses implementations, lowers primitive functions to ``PrimFunc``s and caches them.

``get()`` is the process-wide compiler that upstream's API asks for; every other user makes a ``TECompiler`` of its own.
"""
from __future__ import annotations

import logging
import threading
from typing import Any, NamedTuple, Sequence

from ...ir.expr import Any as AnyDim, GlobalVar, IntImm
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.structural import structural_equal, structural_hash
from ...ir.type import TensorType, TupleType
from ...support.errors import AnchorlegError, ArgumentError, BuildError, TypeMismatchError, UnsupportedOpError
from ...support.names import NameSupply
from ..expr import Call
from ..function import Function
from ..transform.fuse_ops import is_static
from . import te_lowering
from .utils import mangle_module_name

logger = logging.getLogger("te_compiler")


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

    @property
    def funcs(self) -> IRModule:
        """The lowered function in a module of its own."""
        return IRModule({self.prim_fn_var: self.prim_func})


def get_valid_implementations(op: Op, attrs: Any, inputs: list[Any], out_type: Any, target: Any) -> list[Any]:
    """The implementations whose conditions hold, in order of registration.

    Raises UnsupportedOpError when the operator has no strategy for any target.
    """
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
    tuned = _best_tuned(implementations, attrs, inputs, out_type, target) if use_autotvm else None
    if tuned is not None:
        return tuned
    best = max(implementations, key=lambda impl: impl.plevel)
    logger.info("Using %s for %s based on highest priority (%d)", best.name, op.name, best.plevel)
    return best, best.compute(attrs, inputs, out_type)


def _describe(inputs: list[Any]) -> str:
    return ", ".join(f"{t.dtype}{[_plain(d) for d in t.shape]}" for t in inputs) or "none"


def _plain(dim: Any) -> Any:
    return dim.value if isinstance(dim, IntImm) else str(dim)


def _best_tuned(implementations: list[Any], attrs: Any, inputs: list[Any], out_type: Any, target: Any) -> tuple[Any, list[Any]] | None:
    """The tunable implementation of the lowest recorded cost; None without records for any."""
    return None


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
    implementation, outputs = select_implementation(call.op, call.attrs, inputs, out_type, target, use_autotvm=static)
    return LoweredOutput(outputs, implementation)


def _select_for_lowering(call: Call, inputs: list[Any], target: Any) -> tuple[Any, list[Any]]:
    lowered = lower_call(call, inputs, target)
    return lowered.implement, lowered.outputs


class TECompiler:
    """Lowers primitive functions once per (structure, target)."""

    def __init__(self) -> None:
        self._cache: dict[CCacheKey, CCacheValue] = {}
        self._names: dict[str, NameSupply] = {}
        self._lock = threading.RLock()

    def lower(self, source_func: Function | CCacheKey, target: Any = None, mod_name: str = "default") -> CachedFunc:
        """The lowered function.  Errors carry the function's text."""
        key = _cache_key(source_func, target)
        with self._lock:
            value = self._cache.get(key)
            if value is None:
                value = self._cache[key] = CCacheValue(self._lower_new(key, mangle_module_name(mod_name)))
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


def tensor_types(ty: Any) -> list[TensorType]:
    """The tensors inside a type, left to right."""
    return te_lowering.flatten_tensor_types(ty)


__all__ = ["LoweredOutput", "CCacheKey", "CCacheValue", "CachedFunc", "TECompiler", "get", "get_shape", "get_valid_implementations",
           "lower_call", "lower_to_primfunc", "select_implementation", "TupleType"]
