"""Bound inference: which part of each tensor every stage computes, and so the extent of every loop.

Stages are taken consumers first.  An output is computed whole; any other stage computes the hull of what its consumers read while the
loops around its attach point stand still and all loops inside run.  A stage's region is a (minimum, extent) per dimension: the
minimum may depend on the loops around, the extent is a constant whenever the shapes are.
"""
from __future__ import annotations

from typing import Iterable, Mapping, Sequence

from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr
from ...ir.visit import post_order
from ...support.errors import ArgumentError
from ...tir.buffer import ProducerLoad
from ...tir.expr import CommReducer, IterVar, Reduce, Var
from ..operation import ComputeOp, ExternOp, PlaceholderOp
from ..relations import Fuse, Split
from ..schedule import AttachType, Schedule, Stage
from ..tensor import Tensor
from .affine import Affine, Lin
from .domains import Extents, Interval, Values, div_interval, interval, legal_leaf, mod_interval, pass_down, pass_up
from .evaluate import Evaluator

_THREAD_RANK = {"blockIdx": 0, "threadIdx": 1, "vthread": 1}
_SCOPE_RANK = {"": 0, "global": 0, "shared": 1, "shared.dyn": 1, "warp": 2, "local": 2}


class StageInfo:
    """What lowering knows of one stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.op = stage, stage.op
        self.values: list[PrimExpr] = []  # the body with inlined producers substituted: values, or a reduction's sources
        self.condition: PrimExpr | None = None  # of a reduction
        self.init: list[PrimExpr] = []
        self.combiner: CommReducer | None = None
        self.reads: list[tuple[Tensor, list[Lin]]] = []
        self.attach: tuple[StageInfo, IterVar] | None = None
        self.whole = False  # computed whole, and stored to memory of the caller
        self.mins: list[Lin] = []
        self.extents: Extents = {}
        self.loop_values: Values = {}  # every axis counted from 0, over the loop variables
        self.root_values: Values = {}  # by axis variable: true index values
        self.loop_vars: dict[int, Var] = {}  # by leaf axis
        self.fixed: list[tuple[StageInfo, IterVar]] = []  # the loops around the attach point, outermost first
        self.used = False
        self.cut = False  # whether consumers may ask for more than the region, which ends where the tensor does

    @property
    def name(self) -> str:
        """The name the user gave."""
        return self.stage.origin_op.name

    @property
    def shape(self) -> tuple[PrimExpr, ...]:
        """The shape of the outputs."""
        return self.op.output(0).shape

    def axis_extents(self) -> list[Lin]:
        """The extents of the region computed, per output dimension."""
        return [self.extents[id(iv)] for iv in self.op.axis]


class BoundInference:
    """Infers the bounds of all stages of a schedule; ``infos`` has them in the schedule's order."""

    def __init__(self, sch: Schedule, ctx: Affine, args: Iterable[Tensor], thread_extents: Mapping[tuple[str, int], int] | None = None) -> None:
        self.sch, self.ctx = sch, ctx
        self.infos = [StageInfo(s) for s in sch.stages if s.attach_type != AttachType.INLINE]
        self._by_stage = {id(i.stage): i for i in self.infos}
        self.consumers: dict[int, list[StageInfo]] = {id(i): [] for i in self.infos}
        self._evaluator = Evaluator(ctx, self._record, self._inlined)
        self._loads: dict[int, tuple[Tensor, list[Lin], PrimExpr]] = {}
        wanted = {id(self.info(t)) for t in args if self.sch.stage_of_op(t.op) is not None and self._is_kept(t)}
        for info in self.infos:
            info.whole = id(info) in wanted
        self.thread_extents: dict[tuple[str, int], int] = dict(thread_extents or {})  # by thread tag and kernel
        self.threads_grew = False
        self._threads: dict[tuple[str, int], IterVar] = {}

    def _is_kept(self, t: Tensor) -> bool:
        if self.sch[t].attach_type == AttachType.INLINE:
            raise ArgumentError(f"{t.name} is an argument of the function and cannot be computed inline")
        return True

    def info(self, t: Tensor) -> StageInfo:
        """The stage of a tensor, which is not inlined."""
        return self._by_stage[id(self.sch[t])]

    def run(self) -> list[StageInfo]:
        """Fills in everything; gives the stages in order, producers first."""
        for info in self.infos:
            self._expand(info)
        for info in self.infos:
            self._attach(info)
        for info in reversed(self.infos):
            if isinstance(info.op, PlaceholderOp):
                continue
            self._infer(info)
        return self.infos

    # ------------------------------------------------------------ bodies

    def _inlined(self, t: Tensor) -> ComputeOp | None:
        stage = self.sch.stage_of_op(t.op)
        if stage is None:
            raise ArgumentError(f"tensor {t.name} is read but is not in the schedule")
        if stage.attach_type != AttachType.INLINE:
            return None
        if stage.is_output:
            raise ArgumentError(f"compute_inline: {stage.origin_op.name} is an output of the schedule")
        return stage.op  # type: ignore[return-value]

    def _record(self, t: Tensor, indices: list[Lin]) -> PrimExpr:
        load = ProducerLoad(t, [self.ctx.expr(i) for i in indices])
        self._loads[id(load)] = (t, indices, load)
        return load

    def _expand(self, info: StageInfo) -> None:
        """Substitutes inlined producers into the body and collects what it reads."""
        op = info.op
        if isinstance(op, ExternOp):
            for t in op.inputs:
                if self._inlined(t) is not None:
                    raise ArgumentError(f"compute_inline: {t.name} is read by the extern operation {op.name}, which needs it in memory")
        if not isinstance(op, ComputeOp):
            return
        ctx, env = self.ctx, {}
        for iv in (*op.axis, *op.reduce_axis):
            lo, extent = self._index(iv.dom.min), self._index(iv.dom.extent)
            top = ctx.bounds(ctx.add(lo, extent))[1]
            env[id(iv.var)] = ctx.var(iv.var, ctx.bounds(lo)[0], None if top is None else top - 1)
        first = op.body[0]
        if isinstance(first, Reduce):
            info.combiner = first.combiner
            info.values = self._evaluator.run(first.source, env)
            (info.condition,) = self._evaluator.run([first.condition], env)
            info.init = self._evaluator.run(first.init, env)
        else:
            info.values = self._evaluator.run(op.body, env)
        self._collect(info)

    def _collect(self, info: StageInfo) -> None:
        roots = [*info.values, *info.init, *([] if info.condition is None else [info.condition])]
        for node in post_order(roots):
            if isinstance(node, ProducerLoad):
                t, indices, _ = self._loads[id(node)]
                info.reads.append((t, indices))

    # ------------------------------------------------------------ attachment

    def _attach(self, info: StageInfo) -> None:
        for t in dict.fromkeys([t for t, _ in info.reads] if isinstance(info.op, ComputeOp) else info.op.input_tensors):
            self.consumers[id(self.info(t))].append(info)
        stage = info.stage
        if stage.attach_type != AttachType.SCOPE or isinstance(info.op, PlaceholderOp):
            return
        parent = self._by_stage.get(id(stage.attach_stage))
        if parent is None:
            raise ArgumentError(f"compute_at: {info.name} is computed inside stage {stage.attach_stage.op.name}, which is inlined or not of this schedule")
        p = parent.stage
        info.attach = parent, legal_leaf(p.relations, p.leaf_iter_vars, stage.attach_ivar, p.op.name)

    def _fix(self, info: StageInfo) -> None:
        """The loops around the stage: those of its attach stage down to the attach point, after those around that stage."""
        if info.attach is None:
            return
        parent, at = info.attach
        leaves = parent.stage.leaf_iter_vars
        depth = next(i for i, iv in enumerate(leaves) if iv is at)
        info.fixed = [*parent.fixed, *((parent, iv) for iv in leaves[:depth + 1])]

    def _check_reach(self, info: StageInfo, consumer: StageInfo) -> None:
        """Whether the consumer runs inside the loops around ``info``."""
        if info.attach is None:
            return
        parent, at = info.attach
        if consumer is not parent and not any(owner is parent and iv is at for owner, iv in consumer.fixed):
            raise ArgumentError(f"compute_at: {info.name} is computed inside loop {at.var.name} of {parent.name}, but {consumer.name}, "
                                "which reads it, is computed outside of that loop")

    # ------------------------------------------------------------ regions

    def _infer(self, info: StageInfo) -> None:
        self._fix(info)
        consumers = [c for c in self.consumers[id(info)] if c.used]
        info.used = info.whole or info.stage.is_output or bool(consumers)
        if not info.used:
            return
        if isinstance(info.op, ExternOp) or info.whole or info.stage.is_output:
            shape = [self._index(d) for d in info.shape]
            info.mins, extents = [self.ctx.const(0)] * len(shape), shape
            for c in consumers:
                self._check_reach(info, c)
        else:
            info.mins, extents = self._region(info, consumers)
        if isinstance(info.op, ComputeOp):
            self._bind(info, extents)

    def _region(self, info: StageInfo, consumers: Sequence[StageInfo]) -> tuple[list[Lin], list[Lin]]:
        shape = [self._index(d) for d in info.shape]
        hull: list[Interval | None] | None = None
        standing = self._standing(info)
        for c in consumers:
            self._check_reach(info, c)
            if isinstance(c.op, ExternOp):
                return [self.ctx.const(0)] * len(shape), shape
            known = self._root_intervals(c, standing)
            for t, indices in c.reads:
                if self.info(t) is info:
                    read = [interval(self.ctx, i, known) for i in indices]
                    hull = read if hull is None else [self._union(a, b) for a, b in zip(hull, read)]
        pairs = [self._clip(h, extent) for h, extent in zip(hull or [], shape)]
        info.cut = any(h is None or self._passes_end(h, extent) for h, extent in zip(hull or [], shape))
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def _standing(self, info: StageInfo) -> set[int]:
        """The ids of the loop variables that stand still while the stage runs (of threads: that its memory is private to)."""
        rank = _SCOPE_RANK.get(info.stage.scope, 0)
        kept = set()
        for owner, iv in info.fixed:
            mark = owner.stage.iter_var_attrs.get(iv)
            thread = mark.bind_thread if mark is not None else None
            if thread is None or info.stage.scope == "" or _THREAD_RANK.get(thread.thread_tag.split(".")[0], 0) < rank:
                kept.add(id(owner.loop_vars.get(id(iv))))
        return kept

    def _union(self, a: Interval | None, b: Interval | None) -> Interval | None:
        if a is None or b is None:
            return None
        return self.ctx.min(a[0], b[0]), self.ctx.max(a[1], b[1])

    def _clip(self, r: Interval | None, extent: Lin) -> tuple[Lin, Lin]:
        """(minimum, extent) of a range of indices, cut to the dimension where that is certain."""
        ctx = self.ctx
        zero, last = ctx.const(0), ctx.sub(extent, ctx.const(1))
        if r is None:
            return zero, extent
        lo, hi = r
        point = lo is hi
        if ctx.always_at_most(lo, 0):
            lo, point = zero, False
        if self._reaches_end(r, extent):
            hi, point = last, False
        if point:
            return lo, ctx.const(1)
        size = ctx.add(ctx.sub(hi, lo), ctx.const(1))
        if size.value is None and extent.value is not None:
            most = ctx.bounds(size)[1]
            size = extent if most is None else ctx.const(most)
        if size.value is not None and size.value < 0:
            size = zero
        if size.value is not None and extent.value is not None and size.value >= extent.value:
            return zero, extent
        return (lo, size) if size.value is not None or self._loop_free(size) else (zero, extent)

    def _reaches_end(self, r: Interval, extent: Lin) -> bool:
        """Whether a range of indices is certain to reach the end of the dimension, or to pass it."""
        return self.ctx.always_at_least(self.ctx.add(self.ctx.sub(r[1], extent), self.ctx.const(1)), 0)

    def _passes_end(self, r: Interval, extent: Lin) -> bool:
        """Whether a range of indices is cut at the end of the dimension."""
        return self._reaches_end(r, extent) and self.ctx.sub(extent, r[1]).value != 1

    def _loop_free(self, a: Lin) -> bool:
        inside = self.ctx.variables([a])
        loops = {id(v) for i in self.infos for v in i.loop_vars.values()}
        return not inside & loops

    def _index(self, value: PrimExpr | int) -> Lin:
        if isinstance(value, int):
            return self.ctx.const(value)
        if type(value) is IntImm:
            return self.ctx.const(value.value)
        return self._evaluator.run_index([value], {})[0]

    def _bind(self, info: StageInfo, extents: Sequence[Lin]) -> None:
        """Makes the loops of a stage whose region is known."""
        ctx, stage, op = self.ctx, info.stage, info.op
        for iv, extent in zip(op.axis, extents):
            info.extents[id(iv)] = extent
        for iv in op.reduce_axis:
            info.extents[id(iv)] = self._index(iv.dom.extent)
        pass_down(ctx, stage.relations, info.extents, self._index)
        for iv in stage.leaf_iter_vars:
            info.loop_values[id(iv)] = self._loop(info, iv)
        pass_up(ctx, stage.relations, info.extents, info.loop_values)
        for iv, low in zip(op.axis, info.mins):
            info.root_values[id(iv.var)] = ctx.add(low, info.loop_values[id(iv)])
        for iv in op.reduce_axis:
            info.root_values[id(iv.var)] = ctx.add(self._index(iv.dom.min), info.loop_values[id(iv)])

    def _loop(self, info: StageInfo, iv: IterVar) -> Lin:
        extent = info.extents[id(iv)]
        mark = info.stage.iter_var_attrs.get(iv)
        if mark is not None and mark.bind_thread is not None:
            return self._thread_loop(info, iv, mark.bind_thread, extent)
        if extent.value == 1 and (mark is None or mark.tensor_intrin is None):
            return self.ctx.const(0)
        var = info.loop_vars[id(iv)] = Var(iv.var.name, INDEX_DTYPE)
        most = self.ctx.bounds(extent)[1]
        return self.ctx.var(var, 0, None if most is None else max(most - 1, 0))

    def kernel_of(self, info: StageInfo) -> int:
        """Which kernel a stage belongs to: the number of the stage at the root above it."""
        return self.infos.index(info.fixed[0][0] if info.fixed else info)

    def _thread_loop(self, info: StageInfo, iv: IterVar, thread: IterVar, extent: Lin) -> Lin:
        """A loop run by threads: all axes of one tag are one variable per kernel, of the largest extent asked for."""
        key = thread.thread_tag, self.kernel_of(info)
        thread = self._threads.setdefault(key, thread)
        size = extent if thread.dom is None else self._index(thread.dom.extent)
        if size.value is not None:
            known = self.thread_extents.get(key)
            size = self.ctx.const(max(size.value, known or 0))
            self.threads_grew |= known is not None and size.value > known  # type: ignore[operator]
            self.thread_extents[key] = size.value  # type: ignore[assignment]
        info.loop_vars[id(iv)] = thread.var
        most = self.ctx.bounds(size)[1]
        return self.ctx.var(thread.var, 0, None if most is None else most - 1)

    def thread_of(self, info: StageInfo, thread: IterVar) -> IterVar:
        """The axis that stands for all of that tag in the stage's kernel."""
        return self._threads.get((thread.thread_tag, self.kernel_of(info)), thread)

    # ------------------------------------------------------------ ranges of a consumer's axes

    def _root_intervals(self, c: StageInfo, standing: set[int]) -> dict[int, Interval]:
        """The interval of each axis of ``c`` (by the number of its variable's atom) while only ``standing`` loops stand still."""
        ctx, moving = self.ctx, self._moving(c, standing)
        full, ranges = self._leaf_intervals(c, standing)
        self._raise_intervals(c, full, ranges)
        known: dict[int, Interval] = {}
        for iv, low in zip((*c.op.axis, *c.op.reduce_axis), [*c.mins, *(self._index(iv.dom.min) for iv in c.op.reduce_axis)]):
            (number,) = ctx.var(iv.var).terms
            base, r = interval(ctx, low, moving), ranges[id(iv)]
            if base is None:  # where the consumer starts follows from its loops in a way that is not understood: it may be anywhere
                first = self._index(iv.dom.min)
                known[number] = first, ctx.add(first, ctx.sub(self._index(iv.dom.extent), ctx.const(1)))
                continue
            one = base[0] is base[1] and r[0] is r[1]
            lo = ctx.add(base[0], r[0])
            known[number] = lo, (lo if one else ctx.add(base[1], r[1]))
        return known

    def _moving(self, c: StageInfo, standing: set[int]) -> dict[int, Interval]:
        """The loops around ``c`` that run while only ``standing`` stand still, with their ranges."""
        ctx, moving = self.ctx, {}
        for owner, iv in c.fixed:
            var = owner.loop_vars.get(id(iv))
            if var is not None and id(var) not in standing:
                (number,) = ctx.var(var).terms
                moving[number] = ctx.const(0), ctx.sub(owner.extents[id(iv)], ctx.const(1))
        return moving

    def _leaf_intervals(self, c: StageInfo, standing: set[int]) -> tuple[set[int], dict[int, Interval]]:
        ctx, full, ranges = self.ctx, set(), {}
        for iv in c.stage.leaf_iter_vars:
            var = c.loop_vars.get(id(iv))
            if var is None:
                full.add(id(iv))
                zero = ctx.const(0)
                ranges[id(iv)] = zero, zero
            elif id(var) in standing:
                value = c.loop_values[id(iv)]
                ranges[id(iv)] = value, value
            else:
                full.add(id(iv))
                ranges[id(iv)] = ctx.const(0), ctx.sub(c.extents[id(iv)], ctx.const(1))
        return full, ranges

    def _raise_intervals(self, c: StageInfo, full: set[int], ranges: dict[int, Interval]) -> None:
        """From loops up to root axes; an axis all of whose loops run is taken whole."""
        for r in reversed(c.stage.relations):
            if isinstance(r, Split):
                parts, parents = (r.outer, r.inner), (r.parent,)
            elif isinstance(r, Fuse):
                parts, parents = (r.fused,), (r.outer, r.inner)
            else:
                continue
            if all(id(p) in full for p in parts):
                full.update(id(p) for p in parents)
                for p in parents:
                    ranges[id(p)] = self._whole(c.extents[id(p)])
            elif isinstance(r, Split):
                ranges[id(r.parent)] = self._split_interval(ranges[id(r.outer)], ranges[id(r.inner)], c.extents[id(r.inner)])
            else:
                ranges[id(r.outer)], ranges[id(r.inner)] = self._fuse_intervals(ranges[id(r.fused)], c.extents[id(r.outer)], c.extents[id(r.inner)])

    def _whole(self, extent: Lin) -> Interval:
        zero = self.ctx.const(0)
        return (zero, zero) if extent.value == 1 else (zero, self.ctx.sub(extent, self.ctx.const(1)))

    def _split_interval(self, outer: Interval, inner: Interval, step: Lin) -> Interval:
        ctx = self.ctx
        lo = ctx.add(ctx.mul(outer[0], step), inner[0])
        if outer[0] is outer[1] and inner[0] is inner[1]:
            return lo, lo
        return lo, ctx.add(ctx.mul(outer[1], step), inner[1])

    def _fuse_intervals(self, fused: Interval, outer: Lin, inner: Lin) -> tuple[Interval, Interval]:
        ctx = self.ctx
        if fused[0] is fused[1]:
            q, r = ctx.floor_div(fused[0], inner), ctx.floor_mod(fused[0], inner)
            return (q, q), (r, r)
        if inner.value is None:
            return self._whole(outer), self._whole(inner)
        return div_interval(ctx, fused, max(inner.value, 1)), mod_interval(ctx, fused, max(inner.value, 1))
