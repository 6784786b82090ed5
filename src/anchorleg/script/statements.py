"""The functions of the script language that declare memory, open scopes, or state facts; each returns a form (see ``forms.py``)."""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..ir.expr import PrimExpr, Range
from ..support.errors import ArgumentError
from ..tir import expr as tir
from ..tir.buffer import Buffer
from ..tir.stmt import ForKind
from . import forms
from .forms import BufferForm, dtype_text


def _sequence(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


# ---------------------------------------------------------------- buffers


class BufferMaker:
    """``T.Buffer(shape, dtype, ...)``: a parameter's buffer in an annotation, or a view of memory that exists.

    ``T.Buffer[shape, dtype]`` is the older spelling.
    """

    def __call__(self, shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None, scope: str | None = None,
                 align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> BufferForm:
        return BufferForm(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)

    def __getitem__(self, keys: Any) -> BufferForm:
        """``T.Buffer[(16,), "float32"]``; a lone shape is one of float32."""
        if isinstance(keys, tuple) and len(keys) > 1 and (isinstance(keys[1], str) or hasattr(keys[1], "dtype") and not isinstance(keys[1], PrimExpr)):
            return BufferForm(*keys)
        return BufferForm(keys)


def match_buffer(param: Any, shape: Any = None, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None,
                 scope: str | None = None, align: int = -1, offset_factor: int = 0, buffer_type: str = "default",
                 axis_separators: Any = None) -> forms.MatchBuffer:
    """The buffer behind a parameter, or standing for a region of another buffer (whose shape and dtype are the default then)."""
    if shape is None:
        region = forms_region(param)
        shape, dtype = [r.extent for r in region.region], region.buffer.dtype
    return forms.MatchBuffer(param, BufferForm(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators))


def forms_region(value: Any) -> Any:
    """A buffer region from a region, a buffer or an element of one."""
    from .regions import as_region

    return as_region(value)


def alloc_buffer(shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None, scope: str | None = None,
                 align: int = -1, offset_factor: int = 0, buffer_type: str = "default", axis_separators: Any = None) -> forms.BlockAllocation:
    """A buffer that lives in the enclosing block."""
    return forms.BlockAllocation(BufferForm(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators))


def decl_buffer(shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None, scope: str | None = None,
                align: int = 0, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None) -> forms.Declaration:
    """A buffer over ``data``; without it, over memory allocated here."""
    return forms.Declaration(BufferForm(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators))


def allocate(extents: Any, dtype: Any, scope: str = "global", condition: Any = None, annotations: Mapping[str, Any] | None = None,
             var: Any = None) -> forms.Allocation:
    """Memory; the value is the pointer to it: ``var``, or a new one."""
    return forms.Allocation(_sequence(extents), dtype_text(dtype), scope, condition, dict(annotations or {}), var)


def allocate_const(data: Any, dtype: Any, extents: Any, annotations: Mapping[str, Any] | None = None, var: Any = None) -> forms.Constant:
    """Constant data, row by row; the value is the pointer to it: ``var``, or a new one."""
    return forms.Constant(data, dtype_text(dtype), _sequence(extents), dict(annotations or {}), var)


# ---------------------------------------------------------------- loops


def _loop(kind: ForKind, start: Any, stop: Any, extent: Any, annotations: Mapping[str, Any] | None, thread: str | None = None) -> forms.Loops:
    bounds = (start, extent) if extent is not None else (0, start) if stop is None else (start, stop)
    return forms.Loops((bounds,), kind, thread, dict(annotations or {}), extent is not None)


def serial(start: Any, stop: Any = None, *, extent: Any = None, annotations: Mapping[str, Any] | None = None) -> forms.Loops:
    """A loop, iteration after iteration: to ``start``, from ``start`` to ``stop``, or of ``extent`` rounds from ``start`` (so for all loops)."""
    return _loop(ForKind.SERIAL, start, stop, extent, annotations)


def parallel(start: Any, stop: Any = None, *, extent: Any = None, annotations: Mapping[str, Any] | None = None) -> forms.Loops:
    """A loop whose iterations run on several threads."""
    return _loop(ForKind.PARALLEL, start, stop, extent, annotations)


def vectorized(start: Any, stop: Any = None, *, extent: Any = None, annotations: Mapping[str, Any] | None = None) -> forms.Loops:
    """A loop that becomes vector operations."""
    return _loop(ForKind.VECTORIZED, start, stop, extent, annotations)


def unroll(start: Any, stop: Any = None, *, extent: Any = None, annotations: Mapping[str, Any] | None = None) -> forms.Loops:
    """A loop that is written out."""
    return _loop(ForKind.UNROLLED, start, stop, extent, annotations)


def thread_binding(start: Any, stop: Any = None, thread: str | None = None, *, extent: Any = None,
                   annotations: Mapping[str, Any] | None = None) -> forms.Loops:
    """A loop whose iterations are a hardware axis."""
    if thread is None:
        if not isinstance(stop, str):
            raise ArgumentError("T.thread_binding: the name of a thread axis is expected, such as thread=\"threadIdx.x\"")
        start, stop, thread = 0, start, stop
    return _loop(ForKind.THREAD_BINDING, start, stop, extent, annotations, thread)


def grid(*extents: Any) -> forms.Loops:
    """Nested loops over all combinations."""
    return forms.Loops(tuple((0, e) for e in extents), ForKind.SERIAL, None, {}, False)


# ---------------------------------------------------------------- blocks


def block(name: str = "", no_realize: bool = False, exec_scope: str = "") -> forms.BlockScope:
    """A block; see ``tir.Block``."""
    return forms.BlockScope(name, no_realize)


def init() -> forms.InitScope:
    """What a block does before the first round of its reduction."""
    return forms.InitScope()


def where(predicate: Any) -> forms.Where:
    """The condition under which the block runs."""
    return forms.Where(predicate)


def reads(*regions: Any) -> forms.Accesses:
    """What the block reads."""
    return forms.Accesses(_flat(regions), False)


def writes(*regions: Any) -> forms.Accesses:
    """What the block writes."""
    return forms.Accesses(_flat(regions), True)


def _flat(regions: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(r for each in regions for r in (each if isinstance(each, (list, tuple)) else (each,)))


def block_attr(attrs: Mapping[str, Any]) -> forms.BlockAttributes:
    """Annotations of the block."""
    return forms.BlockAttributes(attrs)


class AxisMaker:
    """``T.axis.spatial(dom, value)``, ``T.axis.S`` …, ``T.axis.remap("SR", [i, k])``."""

    _LETTERS = {"S": tir.IterVar.DataPar, "R": tir.IterVar.CommReduce}

    def _one(self, kind: int, dom: Any, value: Any) -> forms.Axis:
        return forms.Axis((kind,), (dom,), (value,))

    def spatial(self, dom: Any, binding: Any, dtype: Any = "int32") -> forms.Axis:
        """An axis whose positions are independent of one another."""
        return self._one(tir.IterVar.DataPar, dom, binding)

    def reduce(self, dom: Any, binding: Any, dtype: Any = "int32") -> forms.Axis:
        """An axis that is summed over, or reduced otherwise."""
        return self._one(tir.IterVar.CommReduce, dom, binding)

    def scan(self, dom: Any, binding: Any, dtype: Any = "int32") -> forms.Axis:
        """An axis that runs in order."""
        return self._one(tir.IterVar.Ordered, dom, binding)

    def opaque(self, dom: Any, binding: Any, dtype: Any = "int32") -> forms.Axis:
        """An axis of which nothing is known."""
        return self._one(tir.IterVar.Opaque, dom, binding)

    def remap(self, kinds: str, bindings: Any, dtype: Any = "int32") -> forms.Axis:
        """One axis for each loop variable, over that loop's range; ``S``: spatial, ``R``: reduction."""
        found = _sequence(bindings)
        if len(kinds) != len(found) or any(k not in self._LETTERS for k in kinds):
            raise ArgumentError(f"T.axis.remap: one of S and R is expected for each of {len(found)} loop variables, got {kinds!r}")
        return forms.Axis(tuple(self._LETTERS[k] for k in kinds), (None,) * len(found), found)

    S, R = spatial, reduce


# ---------------------------------------------------------------- functions


def func_attr(attrs: Mapping[str, Any]) -> forms.FunctionAttributes:
    """Attributes of the function."""
    return forms.FunctionAttributes(attrs)


def func_ret(ret_type: Any) -> forms.FunctionResult:
    """The function's result type."""
    return forms.FunctionResult(ret_type)


# ---------------------------------------------------------------- statements


def attr(node: Any, attr_key: str, value: Any) -> forms.Attribute:
    """An annotation on all that follows."""
    return forms.Attribute(node, attr_key, value)


def Assert(condition: Any, message: Any) -> forms.Assertion:
    """Stops with a message unless a condition holds."""
    return forms.Assertion(condition, message)


def realize(buffer_slice: Any, storage_scope: str = "global", condition: Any = True) -> forms.Realization:
    """A buffer exists over a region."""
    return forms.Realization(buffer_slice, storage_scope, condition)


def LetStmt(value: Any, type_annotation: Any = None, *, var: Any = None) -> forms.Binding:
    """A variable that is a value in all that follows."""
    return forms.Binding(value, var)


def let(v: Any, value: Any, body: Any = None) -> Any:
    """``with T.let(v, value)``, or the expression ``T.let(v, value, body)``."""
    if body is None:
        return forms.Binding(value, v)
    return tir.Let(v, value, body)


def While(condition: Any) -> forms.Repeat:
    """Repeats while a condition holds."""
    return forms.Repeat(condition)


def If(condition: Any) -> forms.Branch:
    """A branch, with ``T.Then()`` and ``T.Else()`` in it."""
    return forms.Branch(condition)


def Then() -> forms.BranchSide:
    """What happens when the condition of ``T.If`` holds."""
    return forms.BranchSide(True)


def Else() -> forms.BranchSide:
    """What happens when the condition of ``T.If`` does not hold."""
    return forms.BranchSide(False)


def buffer_store(buffer: Buffer, value: Any, indices: Any) -> forms.Store:
    """Stores into a buffer."""
    return forms.Store(buffer, value, indices)


def evaluate(value: Any) -> forms.Evaluation:
    """Evaluates an expression for its effect."""
    return forms.Evaluation(value)


def env_thread(thread_tag: str, dtype: str = "int32") -> forms.ThreadForm:
    """A hardware axis."""
    return forms.ThreadForm(thread_tag)


def launch_thread(thread: Any, extent: Any) -> forms.Thread:
    """A hardware axis of ``extent`` positions in all that follows."""
    return forms.Thread(thread, extent)


def meta_var(value: Any) -> forms.MetaVar:
    """A name for a value, without a trace in the program."""
    return forms.MetaVar(value)


def var(dtype: Any, name: str = "") -> Any:
    """A variable; named where it is assigned, or here."""
    return tir.Var(name, dtype_text(dtype)) if name else forms.VarForm(dtype_text(dtype))


def iter_var(var: Any, dom: Any, iter_type: Any, thread_tag: str) -> tir.IterVar:
    """An axis."""
    kinds = {"DataPar": 0, "ThreadIndex": 1, "CommReduce": 2, "Ordered": 3, "Opaque": 4, "Unrolled": 5, "Vectorized": 6, "Parallelized": 7}
    domain = dom if isinstance(dom, Range) or dom is None else Range(*dom) if isinstance(dom, tuple) else Range(0, dom)
    return tir.IterVar(domain, var, kinds[iter_type] if isinstance(iter_type, str) else int(iter_type), thread_tag)


def target(config: Any, host: Any = None) -> Any:
    """A compilation target."""
    from ..target.target import Target

    return Target(config, host)
