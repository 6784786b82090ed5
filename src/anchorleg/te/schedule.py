"""``Schedule`` and ``Stage``: how the operations of a tensor graph are run.

Each operation is a stage with a list of leaf axes, its loops from the outside in.  Primitives split, fuse and reorder the axes, say
where a stage is computed, and mark loops.  A schedule is edited in place; the operations it schedules are never changed:
where a primitive needs another operation (``cache_write``, ``rfactor``), the stage is given a new one and remembers the old.
"""
from __future__ import annotations

import copy
import dataclasses
import functools
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Callable, Iterable, Sequence

from ..ir.expr import INDEX_DTYPE, PrimExpr, Range
from ..ir.transform import PassContext
from ..support.errors import ArgumentError
from ..tir.expr import IntImm, IterVar, Var
from .operation import ComputeOp, Operation
from .relations import Extent, Fuse, Relation, Singleton, Split
from .tensor import Tensor


class AttachType(IntEnum):
    """Where a stage is computed."""

    NONE = 0
    ROOT = 1
    INLINE = 2
    SCOPE = 4


@dataclass
class IterVarAttr:
    """Marks on an axis."""

    iter_type: int | None = None  # IterVar.Unrolled, Vectorized, Parallelized, Tensorized; None: a plain loop
    bind_thread: IterVar | None = None
    pragmas: list[tuple[str, Any]] = field(default_factory=list)
    tensor_intrin: Any = None
    dim_align: tuple[int, int] | None = None  # (factor, offset) of the stride of the buffer's dimension


def primitive(method: Callable[..., Any]) -> Callable[..., Any]:
    """A primitive of schedules: one that keeps a record notes the primitive and what the schedule has become."""
    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        record = self.record
        if record is None or record.busy:
            return method(self, *args, **kwargs)
        record.busy = True
        try:
            result = method(self, *args, **kwargs)
        finally:
            record.busy = False
        record.note(_NAMES.get(method.__name__, method.__name__))
        return result

    return run


_NAMES = {"_fuse_pair": "fuse", "_singleton": "fuse"}


class Record:
    """The steps of one schedule: names of primitives, and a copy of the schedule after each."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.busy = schedule, False
        self.names: list[str] = []
        self.copies: list[Schedule] = []

    def note(self, name: str) -> None:
        """Adds a step."""
        self.names.append(name)
        self.copies.append(self.schedule.copy())


class Stage:
    """One operation and the loops it runs in.

    ``op`` is what it computes now, ``origin_op`` what the user wrote; ``leaf_iter_vars`` its loops from the outside in.
    """

    def __init__(self, op: Operation, is_output: bool = False) -> None:
        self.op = self.origin_op = op
        self.is_output = is_output
        self.scope = ""
        self.attach_type, self.attach_stage, self.attach_ivar = AttachType.ROOT, None, None
        self.double_buffered = False
        self.thread_vars: list[IterVar] = []
        self.store_predicate: PrimExpr | None = None
        self.record: Record | None = None
        self.reset_axes()

    def reset_axes(self) -> None:
        """Gives the stage the plain loops of its operation."""
        axes = [*self.op.axis, *self.op.reduce_axis]
        self.all_iter_vars: list[IterVar] = list(axes)
        self.leaf_iter_vars: list[IterVar] = list(axes)
        self.relations: list[Relation] = []
        self.iter_var_attrs: dict[IterVar, IterVarAttr] = {}

    def __repr__(self) -> str:
        return f"stage({self.origin_op.name})"

    # ------------------------------------------------------------ axes

    @primitive
    def split(self, parent: IterVar, factor: Extent | None = None, nparts: Extent | None = None,
              disable_predication: bool = False) -> tuple[IterVar, IterVar]:
        """``parent`` as (outer, inner): inner of extent ``factor``, or outer of extent ``nparts``."""
        if (factor is None) == (nparts is None):
            raise ArgumentError("split: give exactly one of factor= and nparts=")
        at = self._leaf_index(parent, "split")
        size = _extent_arg(factor if factor is not None else nparts, "split")
        outer, inner = (IterVar(None, Var(f"{parent.var.name}.{part}", INDEX_DTYPE), parent.iter_type) for part in ("outer", "inner"))
        self.relations.append(Split(parent, outer, inner, size if factor is not None else None, size if nparts is not None else None))
        self._replace_leaves(at, at + 1, [outer, inner])
        return outer, inner

    def fuse(self, *args: IterVar) -> IterVar:
        """Consecutive axes as one; without axes (a stage of rank 0) a loop that runs once."""
        if not args:
            return self._singleton()
        fused = args[0]
        for inner in args[1:]:
            fused = self._fuse_pair(fused, inner)
        return fused

    @primitive
    def _fuse_pair(self, outer: IterVar, inner: IterVar) -> IterVar:
        i, j = self._leaf_index(outer, "fuse"), self._leaf_index(inner, "fuse")
        if j + 1 == i:
            outer, inner, i, j = inner, outer, j, i
        if j != i + 1:
            raise ArgumentError(f"fuse: axes {outer.var.name} and {inner.var.name} of {self.op.name} are not consecutive; "
                                f"the loops are {self._leaf_names()}")
        if (outer.iter_type == IterVar.CommReduce) != (inner.iter_type == IterVar.CommReduce):
            raise ArgumentError(f"fuse: {outer.var.name} and {inner.var.name} of {self.op.name}: a reduction axis cannot be fused with another kind")
        fused = IterVar(None, Var(f"{outer.var.name}.{inner.var.name}.fused", INDEX_DTYPE), outer.iter_type)
        self.relations.append(Fuse(outer, inner, fused))
        self._replace_leaves(i, j + 1, [fused])
        return fused

    @primitive
    def _singleton(self) -> IterVar:
        one = IterVar(Range.from_min_extent(0, 1), Var("singleton", INDEX_DTYPE), IterVar.DataPar)
        self.relations.append(Singleton(one))
        self._replace_leaves(0, 0, [one])
        return one

    @primitive
    def reorder(self, *args: IterVar) -> None:
        """Puts these axes in this order, in the places they hold now."""
        places = [self._leaf_index(iv, "reorder") for iv in args]
        if len(set(places)) != len(places):
            raise ArgumentError(f"reorder: an axis of {self.op.name} is given twice: {[iv.var.name for iv in args]}")
        for place, iv in zip(sorted(places), args):
            self.leaf_iter_vars[place] = iv

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: Extent, y_factor: Extent) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Both axes split and reordered to (x_outer, y_outer, x_inner, y_inner)."""
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def _leaf_index(self, iv: IterVar, what: str) -> int:
        if not isinstance(iv, IterVar):
            raise ArgumentError(f"{what}: expected an axis (IterVar) of stage {self.op.name}, got {type(iv).__name__}")
        for i, leaf in enumerate(self.leaf_iter_vars):
            if leaf is iv:
                return i
        raise ArgumentError(f"{what}: {iv.var.name} is no loop of stage {self.op.name} (any more); its loops are {self._leaf_names()}")

    def _leaf_names(self) -> list[str]:
        return [iv.var.name for iv in self.leaf_iter_vars]

    def _replace_leaves(self, begin: int, end: int, new: list[IterVar]) -> None:
        self.leaf_iter_vars[begin:end] = new
        self.all_iter_vars.extend(new)

    # ------------------------------------------------------------ marks on loops

    def _mark(self, iv: IterVar, what: str) -> IterVarAttr:
        self._leaf_index(iv, what)
        return self.iter_var_attrs.setdefault(iv, IterVarAttr())

    @primitive
    def vectorize(self, var: IterVar) -> None:
        """Runs the loop as vector instructions; its extent must be a constant."""
        self._no_reduction(var, "vectorize")
        self._mark(var, "vectorize").iter_type = IterVar.Vectorized

    @primitive
    def unroll(self, var: IterVar) -> None:
        """Unrolls the loop."""
        self._mark(var, "unroll").iter_type = IterVar.Unrolled

    @primitive
    def parallel(self, var: IterVar) -> None:
        """Shares the loop's iterations among threads."""
        self._no_reduction(var, "parallel")
        self._mark(var, "parallel").iter_type = IterVar.Parallelized

    def _no_reduction(self, iv: IterVar, what: str) -> None:
        if isinstance(iv, IterVar) and iv.iter_type == IterVar.CommReduce:
            raise ArgumentError(f"{what}: {iv.var.name} of {self.op.name} is a reduction axis, its iterations depend on one another; use rfactor first")

    @primitive
    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Runs the loop on a device's threads (``te.thread_axis``)."""
        if thread_ivar.iter_type != IterVar.ThreadIndex:
            raise ArgumentError(f"bind: expected an axis made by te.thread_axis, got {thread_ivar.var.name}")
        self._mark(ivar, "bind").bind_thread = thread_ivar

    @primitive
    def env_threads(self, threads: Iterable[IterVar]) -> None:
        """Thread axes that are open around the whole stage."""
        self.thread_vars = [threads] if isinstance(threads, IterVar) else list(threads)

    @primitive
    def tensorize(self, var: IterVar, tensor_intrin: Any) -> None:
        """Replaces the loops from ``var`` inwards by the intrinsic's body (``te.decl_tensor_intrin``)."""
        mark = self._mark(var, "tensorize")
        mark.iter_type, mark.tensor_intrin = IterVar.Tensorized, tensor_intrin

    @primitive
    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """A hint on the loop: an AttrStmt ``pragma_<type>`` around its body."""
        self._mark(var, "pragma").pragmas.append((pragma_type, 1 if pragma_value is None else pragma_value))

    @primitive
    def prefetch(self, tensor: Tensor, var: IterVar, offset: Any) -> None:
        """Accepted and without effect: memory is prefetched by the processor."""
        self._leaf_index(var, "prefetch")

    # ------------------------------------------------------------ placement and storage

    @primitive
    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Computes the stage inside the loop ``scope`` of its consumer ``parent``, just the part needed there."""
        if not any(iv is scope for iv in parent.all_iter_vars):
            raise ArgumentError(f"compute_at: {scope.var.name} is no axis of stage {parent.op.name}; its loops are {parent._leaf_names()}")
        if parent is self:
            raise ArgumentError(f"compute_at: stage {self.op.name} cannot be computed inside itself")
        self.attach_type, self.attach_stage, self.attach_ivar = AttachType.SCOPE, parent, scope

    @primitive
    def compute_inline(self) -> None:
        """Substitutes the stage's expression wherever it is read."""
        if self.op.reduce_axis or not isinstance(self.op, ComputeOp):
            raise ArgumentError(f"compute_inline: {self.op.name} is a {'reduction' if self.op.reduce_axis else type(self.op).__name__}, "
                                "which has no expression to substitute")
        self.attach_type, self.attach_stage, self.attach_ivar = AttachType.INLINE, None, None

    @primitive
    def compute_root(self) -> None:
        """Computes the stage as a whole, before its consumers."""
        self.attach_type, self.attach_stage, self.attach_ivar = AttachType.ROOT, None, None

    @primitive
    def set_scope(self, scope: str) -> None:
        """The memory of the stage's buffer ("global", "shared", "local")."""
        self.scope = scope

    @primitive
    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Makes the buffer's stride along output axis ``axis`` equal ``offset`` modulo ``factor`` (in elements)."""
        if not any(iv is axis for iv in self.op.axis):
            raise ArgumentError(f"storage_align: {axis.var.name} is no output axis of {self.op.name}")
        self.iter_var_attrs.setdefault(axis, IterVarAttr()).dim_align = (int(factor), int(offset))

    @primitive
    def double_buffer(self) -> None:
        """Marks the buffer as double buffered (a hint for devices)."""
        self.double_buffered = True

    @primitive
    def set_store_predicate(self, predicate: PrimExpr) -> None:
        """Stores only where ``predicate`` (over the loop variables) holds."""
        self.store_predicate = predicate


def _stage_copy(stage: Stage) -> Stage:
    """A stage with lists and marks of its own; axes and operations are shared."""
    new = copy.copy(stage)
    new.thread_vars, new.all_iter_vars, new.leaf_iter_vars = list(stage.thread_vars), list(stage.all_iter_vars), list(stage.leaf_iter_vars)
    new.relations, new.record = list(stage.relations), None
    new.iter_var_attrs = {iv: dataclasses.replace(a, pragmas=list(a.pragmas)) for iv, a in stage.iter_var_attrs.items()}
    return new


def _extent_arg(value: Any, what: str) -> Extent:
    if isinstance(value, IntImm):
        value = value.value
    if isinstance(value, PrimExpr):
        return value
    if int(value) != value or int(value) < 1:
        raise ArgumentError(f"{what}: expected a whole extent of at least 1, got {value}")
    return int(value)


class Schedule:
    """The stages of a tensor graph, producers before consumers; ``s[tensor]`` is a tensor's stage.

    With ``keep_schedule_record`` (the context's option ``te.keep_schedule_record``), ``primitive_record`` and ``schedule_record`` have the
    names of the primitives applied, and the schedule after each; the first, ``vanilla``, is the schedule without any.
    """

    def __init__(self, outputs: Sequence[Operation], keep_schedule_record: bool = False) -> None:
        self.outputs = list(outputs)
        ids = {id(op) for op in outputs}
        self.stages = [Stage(op, id(op) in ids) for op in operations_below(outputs)]
        self._stage_of: dict[int, Stage] = {id(s.op): s for s in self.stages}
        self._kept: list[Operation] = []  # replaced operations, so that their ids stay theirs
        self.record: Record | None = None
        if keep_schedule_record:
            self._begin_record()

    def _begin_record(self) -> None:
        self.record = Record(self)
        for stage in self.stages:
            stage.record = self.record
        self.record.note("vanilla")

    @property
    def keep_schedule_record(self) -> bool:
        """Whether steps are kept."""
        return self.record is not None

    @property
    def schedule_record(self) -> list[Schedule]:
        """The schedule after each step; empty when steps are not kept."""
        return self.record.copies if self.record is not None else []

    @property
    def primitive_record(self) -> list[str]:
        """The names of the steps."""
        return self.record.names if self.record is not None else []

    def copy(self) -> Schedule:
        """A schedule of its own with the same stages, loops and marks; it keeps no record."""
        new = copy.copy(self)
        stages = {id(s): _stage_copy(s) for s in self.stages}
        for stage in stages.values():
            stage.attach_stage = stages.get(id(stage.attach_stage))
        new.stages = [stages[id(s)] for s in self.stages]
        new._stage_of = {key: stages[id(s)] for key, s in self._stage_of.items()}
        new.outputs, new._kept, new.record = list(self.outputs), list(self._kept), None
        return new

    @property
    def stage_map(self) -> dict[Operation, Stage]:
        """Each operation (also the replaced ones) with its stage."""
        ops = {id(op): op for s in self.stages for op in (s.op, s.origin_op)} | {id(op): op for op in self._kept}
        return {op: self._stage_of[key] for key, op in ops.items()}

    def __getitem__(self, k: Tensor | Operation) -> Stage:
        op = k.op if isinstance(k, Tensor) else k
        if not isinstance(op, Operation):
            raise ArgumentError(f"a schedule is indexed by a tensor or an operation, got {type(k).__name__}")
        found = self._stage_of.get(id(op))
        if found is None:
            raise ArgumentError(f"the schedule has no stage for {op.name}; it has: {', '.join(s.origin_op.name for s in self.stages)}")
        return found

    def __contains__(self, k: Tensor | Operation) -> bool:
        return id(k.op if isinstance(k, Tensor) else k) in self._stage_of

    def stage_of_op(self, op: Operation) -> Stage | None:
        """The stage that computes ``op``'s outputs now, or None."""
        return self._stage_of.get(id(op))

    def normalize(self) -> Schedule:
        """The schedule itself: lowering needs no normal form."""
        return self

    # ------------------------------------------------------------ bookkeeping for primitives that make operations

    def set_op(self, stage: Stage, op: Operation) -> None:
        """Gives ``stage`` another operation with the same outputs."""
        self._kept.append(stage.op)
        self._stage_of[id(op)] = stage
        stage.op = op

    def insert_stage(self, position: int, op: Operation) -> Stage:
        """A new stage for ``op``, placed at ``position``."""
        stage = Stage(op)
        stage.record = self.record
        self.stages.insert(position, stage)
        self._stage_of[id(op)] = stage
        return stage

    # ------------------------------------------------------------ dataflow primitives

    @primitive
    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of ``tensor`` in ``scope`` that ``readers`` (tensors or operations) read in its place."""
        from .dataflow import cache_read

        return cache_read(self, tensor, scope, readers)

    @primitive
    def cache_write(self, tensor: Any, scope: str) -> Any:
        """Computes ``tensor`` into a buffer in ``scope``, which the original stage then copies out; gives the new tensor.

        A list of all outputs of one operation gives a list.
        """
        from .dataflow import cache_write

        return cache_write(self, tensor, scope)

    @primitive
    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Computes the reduction in parts, one per value of the reduction loop ``axis``, and then reduces the parts.

        Gives the tensor of parts, with the new dimension at ``factor_axis`` (a tuple for reductions of several values).
        """
        from .dataflow import rfactor

        return rfactor(self, tensor, axis, factor_axis)


def operations_below(outputs: Sequence[Operation]) -> list[Operation]:
    """All operations that ``outputs`` need, each after its inputs."""
    order: list[Operation] = []
    seen: set[int] = set()
    for out in outputs:
        stack: list[tuple[Operation, bool]] = [(out, False)]
        while stack:
            op, ready = stack.pop()
            if ready:
                order.append(op)
            elif id(op) not in seen:
                seen.add(id(op))
                stack.append((op, True))
                stack.extend((t.op, False) for t in reversed(op.input_tensors) if id(t.op) not in seen)
    return order


def create_schedule(ops: Any) -> Schedule:
    """The default schedule of operations (or tensors): every stage computed as a whole, with plain loops."""
    given = ops if isinstance(ops, (list, tuple)) else [ops]
    outputs = [o.op if isinstance(o, Tensor) else o for o in given]
    for o in outputs:
        if not isinstance(o, Operation):
            raise ArgumentError(f"create_schedule expects operations, got {type(o).__name__}")
    return Schedule(list(dict.fromkeys(outputs)), bool(PassContext.current().get("te.keep_schedule_record", False)))


