"""Loop nests: turns stages with known bounds into statements.

Each stage becomes its loops, outermost first, around stores of its values; stages computed inside a loop are put at the head of
its body.  A split that does not divide its axis leaves a condition, marked ``likely``; it stands in the outermost
loop in which its value is known.
"""
from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...ir.expr import INDEX_DTYPE, IntImm, PrimExpr, Range
from ...ir.visit import rewrite
from ...support.errors import ArgumentError
from ...tir import op as tir_op
from ...tir.buffer import Buffer, BufferLoad
from ...tir.expr import GE, LT, IterVar, Var
from ...tir.stmt import AttrStmt, BufferRealize, BufferStore, For, ForKind, IfThenElse, LetStmt, Stmt, seq
from ..operation import ComputeOp, ExternOp, PlaceholderOp
from ..relations import Split
from ..schedule import IterVarAttr
from ..tensor import Tensor
from .affine import Lin
from .bounds import BoundInference, StageInfo
from .domains import Values, overshoots, pass_up
from .evaluate import Evaluator
from .memory import compact_strides
from .tensorize import tensorized_stmt

_KINDS = {IterVar.Unrolled: ForKind.UNROLLED, IterVar.Vectorized: ForKind.VECTORIZED, IterVar.Parallelized: ForKind.PARALLEL}
_TRUE = IntImm("bool", 1)
_PLAIN = IterVarAttr()


class Place:
    """Where a stage's outputs lie: a buffer, and the index of the tensor that is the buffer's first element."""

    __slots__ = ("buffer", "base")

    def __init__(self, buffer: Buffer, base: Sequence[Lin] | None) -> None:
        self.buffer, self.base = buffer, base


class Guard:
    """A condition of a nest: an expression, and the loop variables it depends on."""

    __slots__ = ("condition", "variables")

    def __init__(self, condition: PrimExpr, variables: set[int]) -> None:
        self.condition, self.variables = condition, variables


class NestBuilder:
    """Builds the statement of a whole schedule.  ``args`` maps tensors of the caller to their buffers."""

    def __init__(self, bounds: BoundInference, args: Mapping[Tensor, Buffer]) -> None:
        self.bounds, self.ctx = bounds, bounds.ctx
        self.evaluator = Evaluator(bounds.ctx, self._load)
        self.places: dict[tuple[int, int], Place] = {}
        self.done: dict[int, Stmt] = {}
        self.attached: dict[tuple[int, int], list[StageInfo]] = {}
        for t, buffer in args.items():
            if bounds.sch.stage_of_op(t.op) is not None:
                self.places[id(bounds.info(t)), t.value_index] = Place(buffer, None)
        self.given = set(self.places)

    def build(self) -> Stmt:
        """The statement that runs the schedule."""
        infos = [i for i in self.bounds.infos if i.used and not isinstance(i.op, PlaceholderOp)]
        for info in infos:
            self._make_places(info)
            if info.attach is not None:
                self.attached.setdefault((id(info.attach[0]), id(info.attach[1])), []).append(info)
        for info in infos:
            self.done[id(info)] = self._stage(info)
        return self._with_stages([i for i in infos if i.attach is None], None)

    # ------------------------------------------------------------ memory

    def _make_places(self, info: StageInfo) -> None:
        extents = info.axis_extents() if isinstance(info.op, ComputeOp) else [self.bounds._index(d) for d in info.shape]
        for k in range(info.op.num_outputs):
            key = id(info), k
            if key in self.places:
                continue
            t = info.stage.origin_op.output(k)
            if isinstance(info.op, ExternOp):
                extents = [self.bounds._index(d) for d in info.op.output(k).shape]
            shape = [self.ctx.expr(e) for e in extents]
            buffer = Buffer(None, t.dtype, shape, self._strides(info, shape), 0, t.name, scope=info.stage.scope or "global")
            self.places[key] = Place(buffer, info.mins if isinstance(info.op, ComputeOp) else None)

    def _strides(self, info: StageInfo, shape: Sequence[PrimExpr]) -> Sequence[Any]:
        """Strides that meet ``storage_align``; empty when compact."""
        marks = [info.stage.iter_var_attrs.get(iv, _PLAIN).dim_align for iv in info.op.axis]
        if not any(marks):
            return ()
        if not all(isinstance(d, IntImm) for d in shape):
            raise ArgumentError(f"storage_align: the shape of {info.name} is not constant")
        strides, step = [], 1
        for mark, d in zip(reversed(marks), reversed(shape)):
            if mark is not None:
                factor, offset = mark
                step += (offset - step) % factor
            strides.append(step)
            step *= d.value  # type: ignore[attr-defined]
        return strides[::-1]

    def place(self, t: Tensor) -> Place:
        """Where a tensor lies."""
        found = self.places.get((id(self.bounds.info(t)), t.value_index))
        if found is None:
            raise ArgumentError(f"tensor {t.name} is read, but it is neither computed nor among the arguments of the function")
        return found

    def _load(self, t: Tensor, indices: list[Lin]) -> PrimExpr:
        place = self.place(t)
        return BufferLoad(place.buffer, self._relative(place, indices))

    def _relative(self, place: Place, indices: Sequence[Lin]) -> list[PrimExpr]:
        if place.base is None:
            return [self.ctx.expr(i) for i in indices]
        return [self.ctx.expr(self.ctx.sub(i, b)) for i, b in zip(indices, place.base)]

    # ------------------------------------------------------------ composition

    def _with_stages(self, stages: Sequence[StageInfo], body: Stmt | None) -> Stmt:
        """``body`` after ``stages``, within the life of their buffers."""
        result = body
        for info in reversed(stages):
            result = seq(self.done[id(info)], result)
            for k in range(info.op.num_outputs):
                place = self.places[id(info), k]
                if (id(info), k) not in self.given:
                    region = [Range.from_min_extent(0, d) for d in place.buffer.shape]
                    result = BufferRealize(place.buffer, region, _TRUE, result)
        return seq(result)

    def _stage(self, info: StageInfo) -> Stmt:
        if isinstance(info.op, ExternOp):
            return self._extern(info, info.op)
        return StageNest(self, info).build()

    def _extern(self, info: StageInfo, op: ExternOp) -> Stmt:
        memo: dict[int, Any] = {}
        places = [self.place(t) for t in op.inputs] + [self.places[id(info), k] for k in range(op.num_outputs)]
        for formal, place in zip((*op.input_placeholders, *op.output_placeholders), places):
            actual = place.buffer
            memo[id(formal)], memo[id(formal.data)] = (formal, actual), (formal.data, actual.data)
            pairs = [(formal.elem_offset, actual.elem_offset), *zip(formal.strides, actual.strides or compact_strides(actual.shape))]
            memo.update({id(a): (a, b) for a, b in pairs if isinstance(a, Var)})
        return rewrite(op.body, lambda n: n, memo)  # type: ignore[return-value]


class StageNest:
    """The loop nest of one compute stage."""

    def __init__(self, owner: NestBuilder, info: StageInfo) -> None:
        self.owner, self.info, self.ctx, self.stage = owner, info, owner.ctx, info.stage
        self.leaves = info.stage.leaf_iter_vars
        self.op: ComputeOp = info.op  # type: ignore[assignment]
        self.first_reduce = next((i for i, iv in enumerate(self.leaves) if iv.iter_type == IterVar.CommReduce), len(self.leaves))
        self.open_threads = {id(o.loop_vars.get(id(iv))) for o, iv in info.fixed
                             if o.stage.iter_var_attrs.get(iv, _PLAIN).bind_thread is not None}

    def build(self) -> Stmt:
        """The statement."""
        tensorized = [i for i, iv in enumerate(self.leaves) if self._mark(iv).tensor_intrin is not None]
        if tensorized:
            return self._tensorized(tensorized[0])
        if self.info.combiner is None:
            guards = self._guards(self.info.loop_values, data=True, reduce=True)
            return self._loops(0, len(self.leaves), self.info.loop_vars, guards, self._stores())
        return self._reduction()

    def _mark(self, iv: IterVar) -> IterVarAttr:
        return self.stage.iter_var_attrs.get(iv, _PLAIN)

    # ------------------------------------------------------------ values

    def _places(self) -> list[Place]:
        return [self.owner.places[id(self.info), k] for k in range(self.op.num_outputs)]

    def _indices(self, place: Place, values: Values) -> list[PrimExpr]:
        if place.base is not None:
            return [self.ctx.expr(values[id(iv)]) for iv in self.op.axis]
        return [self.ctx.expr(self.ctx.add(low, values[id(iv)])) for low, iv in zip(self.info.mins, self.op.axis)]

    def _stores(self) -> Stmt:
        values = self.owner.evaluator.run(self.info.values, self.info.root_values)
        stores = [BufferStore(p.buffer, v, self._indices(p, self.info.loop_values)) for p, v in zip(self._places(), values)]
        return self._store_guarded(seq(*stores))

    def _store_guarded(self, stmt: Stmt) -> Stmt:
        if self.stage.store_predicate is None:
            return stmt
        env = {id(iv.var): self.info.loop_values[id(iv)] for iv in self.leaves}
        (condition,) = self.owner.evaluator.run([self.stage.store_predicate], env)
        return IfThenElse(condition, stmt)

    # ------------------------------------------------------------ reductions

    def _reduction(self) -> Stmt:
        """Loops outside the first reduction axis hold: the start values' nest, then the accumulating nest."""
        info, r = self.info, self.first_reduce
        guards = self._guards(info.loop_values, data=True, reduce=True)
        outside = {id(info.loop_vars.get(id(iv))) for iv in self.leaves[:r]}
        own = {id(v) for v in info.loop_vars.values()}
        shared = [g for g in guards if g.variables & own <= outside]
        inner = [g for g in guards if not g.variables & own <= outside]
        update = self._loops(r, len(self.leaves), info.loop_vars, inner, self._update())
        return self._loops(0, r, info.loop_vars, shared, seq(self._start(), update))

    def _start(self) -> Stmt:
        """Stores the start values over the data axes inside the first reduction axis, with loops of its own."""
        info, ctx = self.info, self.ctx
        leaves = [iv for iv in self.leaves[self.first_reduce:] if iv.iter_type != IterVar.CommReduce]
        values, loop_vars = dict(info.loop_values), dict(info.loop_vars)
        for iv in leaves:
            old = info.loop_vars.get(id(iv))
            if old is not None and self._mark(iv).bind_thread is None:
                loop_vars[id(iv)] = new = Var(f"{old.name}.init", old.dtype)
                values[id(iv)] = ctx.var(new, *ctx.bounds(info.loop_values[id(iv)]))
        pass_up(ctx, self.stage.relations, info.extents, values)
        own = {id(loop_vars.get(id(iv))) for iv in leaves}
        guards = [g for g in self._guards(values, data=True, reduce=False) if g.variables & own]
        stores = [BufferStore(p.buffer, v, self._indices(p, values)) for p, v in zip(self._places(), self._start_values(values))]
        return self._loops(self.first_reduce, len(self.leaves), loop_vars, guards, seq(*stores), init=True)

    def _start_values(self, values: Values) -> list[PrimExpr]:
        info = self.info
        if not info.init:
            return list(info.combiner.identity_element)  # type: ignore[union-attr]
        env = {id(iv.var): self.ctx.add(low, values[id(iv)]) for iv, low in zip(self.op.axis, info.mins)}
        return self.owner.evaluator.run(info.init, env)

    def _update(self) -> Stmt:
        info = self.info
        places = self._places()
        roots = self._clamped_roots()
        sources = self.owner.evaluator.run(info.values, roots)
        indices = [self._indices(p, info.loop_values) for p in places]
        held = [BufferLoad(p.buffer, i) for p, i in zip(places, indices)]
        results = combined(info.combiner, held, sources)
        stmt = self._store_guarded(store_together(places, results, indices))
        (condition,) = self.owner.evaluator.run([info.condition], roots)  # type: ignore[list-item]
        return stmt if isinstance(condition, IntImm) and condition.value else IfThenElse(condition, stmt)

    # ------------------------------------------------------------ sums past the end

    def _sums_past_the_end(self, iv: IterVar) -> bool:
        """Whether sums past the end of ``iv`` are made (and never read) rather than asked about.

        So it is where a tile in registers reaches past an end that is not known, and what is read has entries there, or the last
        entry can be taken instead.
        """
        info, ctx = self.info, self.ctx
        if info.combiner is None or info.stage.scope != "local" or info.attach is None:
            return False
        extent = self.owner.bounds._index(info.shape[self._axis_number(iv)])
        if extent.value is not None or ctx.bounds(extent)[0] is None or info.extents[id(iv)].value is None:
            return False
        kinds = {self._mark(leaf).iter_type for leaf in self._leaves_of(iv)}
        if not kinds <= {IterVar.Unrolled, IterVar.Vectorized}:
            return False
        return not self._reads_to_the_end(iv) or kinds == {IterVar.Unrolled} and any(iv is leaf for leaf in self.leaves)

    def _leaves_of(self, iv: IterVar) -> list[IterVar]:
        """The loops that an axis became."""
        parts = [iv]
        for r in self.stage.relations:
            if isinstance(r, Split) and any(r.parent is p for p in parts):
                parts = [*(p for p in parts if p is not r.parent), r.outer, r.inner]
        return parts

    def _axis_number(self, iv: IterVar) -> int:
        return next(k for k, axis in enumerate(self.op.axis) if axis is iv)

    def _clamped_roots(self) -> Values:
        """The index values that the terms of a sum are read at."""
        roots, ctx = dict(self.info.root_values), self.ctx
        for iv, extent in zip(self.op.axis, self.info.shape):
            if self._sums_past_the_end(iv) and self._reads_to_the_end(iv):
                last = ctx.sub(self.owner.bounds._index(extent), ctx.const(1))
                roots[id(iv.var)] = ctx.min(roots[id(iv.var)], last)
        return roots

    def _reads_to_the_end(self, iv: IterVar) -> bool:
        """Whether a tensor that is read along ``iv`` may end where ``iv`` does; what is computed for this stage has the entries beyond."""
        var = {id(iv.var)}
        for t, indices in self.info.reads:
            source = self.owner.bounds.info(t)
            ends = source.cut or source.whole or source.stage.is_output or not isinstance(source.op, ComputeOp)
            if ends and self.ctx.variables(indices) & var:
                return True
        return False

    # ------------------------------------------------------------ conditions

    def _guards(self, values: Values, data: bool, reduce: bool) -> list[Guard]:
        """What must hold for the point with these values to be computed, as far as it is not certain."""
        ctx, info = self.ctx, self.info
        kinds = [k for k, wanted in (((IterVar.DataPar), data), ((IterVar.CommReduce), reduce)) if wanted]
        relations = [r for r in self.stage.relations if r[0].iter_type in kinds]
        found = [self._guard(LT, a, b) for a, b in overshoots(ctx, relations, info.extents, values)]
        if data:
            for iv, low, extent in zip(self.op.axis, info.mins, self.info.shape):
                found.extend(self._inside(iv, low, self.owner.bounds._index(extent), values))
            found.extend(self._thread_guards(values))
        return found

    def _inside(self, iv: IterVar, low: Lin, extent: Lin, values: Values) -> list[Guard]:
        ctx, found = self.ctx, []
        value = ctx.add(low, values[id(iv)])
        end = ctx.sub(ctx.add(low, self.info.extents[id(iv)]), extent)
        if not self._sums_past_the_end(iv) and not ctx.always_at_most(end, 0) and not ctx.always_at_most(ctx.sub(value, extent), -1):
            found.append(self._guard(LT, value, extent))
        if not ctx.always_at_least(low, 0) and not ctx.always_at_least(value, 0):
            found.append(self._guard(GE, value, ctx.const(0)))
        return found

    def _thread_guards(self, values: Values) -> list[Guard]:
        """Loops bound to more threads than they have iterations."""
        ctx, found = self.ctx, []
        for iv in self.leaves:
            if self._mark(iv).bind_thread is not None:
                value, extent = values[id(iv)], self.info.extents[id(iv)]
                if not ctx.always_at_most(ctx.sub(value, extent), -1):
                    found.append(self._guard(LT, value, extent))
        return found

    def _guard(self, kind: type, value: Lin, limit: Lin) -> Guard:
        condition = kind(self.ctx.expr(value), self.ctx.expr(limit))
        return Guard(tir_op.likely(condition), self.ctx.variables([value, limit]))

    # ------------------------------------------------------------ loops

    def _loops(self, begin: int, end: int, loop_vars: Mapping[int, Var], guards: Sequence[Guard], body: Stmt,
               init: bool = False) -> Stmt:
        """``body`` in the loops ``begin:end``, with each guard in the outermost loop that defines all it asks about."""
        levels = [i for i in range(begin, end) if not (init and self.leaves[i].iter_type == IterVar.CommReduce)]
        waiting = list(guards)
        innermost = bool(self.open_threads) or any(self._mark(iv).bind_thread is not None for iv in self.leaves)
        if innermost:
            body, waiting = guarded(waiting, body), []
        for i in reversed(levels):
            iv = self.leaves[i]
            var = loop_vars.get(id(iv))
            here = [g for g in waiting if var is not None and id(var) in g.variables]
            waiting = [g for g in waiting if g not in here]
            if not init:
                body = self.owner._with_stages(self.owner.attached.get((id(self.info), id(iv)), ()), body)
            body = self._loop(iv, var, guarded(here, body), init)
        return guarded(waiting, body)

    def _loop(self, iv: IterVar, var: Var | None, body: Stmt, init: bool) -> Stmt:
        mark = self._mark(iv)
        for kind, value in () if init else mark.pragmas:
            body = AttrStmt(iv, f"pragma_{kind}", _pragma_value(value), body)
        if mark.bind_thread is not None:
            return self._thread(mark.bind_thread, iv, body, init)
        if var is None:
            return body
        return For(var, 0, self.ctx.expr(self.info.extents[id(iv)]), _KINDS.get(mark.iter_type, ForKind.SERIAL), body)  # type: ignore[arg-type]

    def _thread(self, thread: IterVar, iv: IterVar, body: Stmt, init: bool) -> Stmt:
        bounds = self.owner.bounds
        thread = bounds.thread_of(self.info, thread)
        if init or id(thread.var) in self.open_threads:
            return body
        size = bounds.thread_extents.get((thread.thread_tag, bounds.kernel_of(self.info)))
        extent = IntImm(INDEX_DTYPE, size) if size is not None else self.ctx.expr(self.info.extents[id(iv)])
        return AttrStmt(thread, "virtual_thread" if thread.thread_tag.startswith("vthread") else "thread_extent", extent, body)

    # ------------------------------------------------------------ tensorize

    def _tensorized(self, at: int) -> Stmt:
        """The loops outside the tensorized one around the intrinsic; its start part before the reduction loops, if there are any."""
        info, r = self.info, self.first_reduce
        guards = self._guards(info.loop_values, data=True, reduce=True)
        inside = {id(info.loop_vars.get(id(iv))) for iv in self.leaves[at:]}
        if any(g.variables & inside for g in guards):
            raise ArgumentError(f"tensorize: the tensorized loops of {info.name} do not divide its axes; the intrinsic computes whole tiles only")
        if r >= at:
            return self._loops(0, at, info.loop_vars, guards, tensorized_stmt(self, at, "body"))
        update = self._loops(r, at, info.loop_vars, (), tensorized_stmt(self, at, "update"))
        if any(iv.iter_type != IterVar.CommReduce for iv in self.leaves[r:at]):
            raise ArgumentError(f"tensorize: in {info.name} a data axis lies inside a reduction axis, outside of the tensorized loops; reorder them")
        return self._loops(0, r, info.loop_vars, guards, seq(tensorized_stmt(self, at, "reset"), update))


def guarded(guards: Sequence[Guard], body: Stmt) -> Stmt:
    """``body`` under the conditions."""
    if not guards:
        return body
    return IfThenElse(tir_op.all(*(g.condition for g in guards)), body)


def combined(combiner: Any, held: Sequence[PrimExpr], sources: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The reducer's results for the values held and the new ones."""
    memo: dict[int, Any] = {id(v): (v, x) for v, x in zip((*combiner.lhs, *combiner.rhs), (*held, *sources))}
    return [rewrite(r, lambda n: n, memo) for r in combiner.result]  # type: ignore[misc]


def store_together(places: Sequence[Place], values: Sequence[PrimExpr], indices: Sequence[Sequence[PrimExpr]]) -> Stmt:
    """Stores several values as if at once: all are computed before the first is stored."""
    names = [Var(f"new{k}", v.dtype) for k, v in enumerate(values[:-1])]
    stored = [values[-1], *names]
    order = [len(values) - 1, *range(len(values) - 1)]
    stmt = seq(*(BufferStore(places[k].buffer, v, indices[k]) for k, v in zip(order, stored)))
    for name, v in reversed(list(zip(names, values))):
        stmt = LetStmt(name, v, stmt)
    return stmt


def _pragma_value(value: Any) -> Any:
    return value if isinstance(value, (PrimExpr, int)) else tir_op.convert(value)

