"""Tensorize: puts a hand-written intrinsic in place of the inner loops of a nest, after checking that it computes the same.

The check compares the stage's body, written over the intrinsic's own axes and with indices counted from the part of each tensor
that one call works on, with the body the intrinsic declares.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ...ir.expr import IntImm, PrimExpr
from ...ir.structural import first_difference
from ...ir.visit import rewrite
from ...support.errors import ArgumentError
from ...tir import op as tir_op
from ...tir.buffer import Buffer, BufferLoad, ProducerLoad
from ...tir.expr import IterVar, Reduce, Var
from ...tir.stmt import BufferStore, Stmt
from ..tensor import Tensor
from .affine import Lin
from .domains import Interval, interval
from .evaluate import Env, Evaluator
from .memory import compact_strides

if TYPE_CHECKING:
    from ..tensor_intrin import TensorIntrin
    from .nest import Place, StageNest


class _Match(NamedTuple):
    """What one call of the intrinsic works on: the first element of each input and of the output."""

    inputs: list[tuple[Tensor, list[Lin]]]
    output: list[Lin]


def tensorized_stmt(nest: StageNest, at: int, part: str) -> Stmt:
    """The intrinsic's statement ("body", "reset" or "update") over the stage's buffers, for the loops from ``at`` inwards."""
    intrin: TensorIntrin = nest.stage.iter_var_attrs[nest.leaves[at]].tensor_intrin
    stmt = {"body": intrin.body, "reset": intrin.reduce_init, "update": intrin.reduce_update}[part]
    if stmt is None:
        raise ArgumentError(f"tensorize: {intrin.name} has no {part} statement, which {nest.info.name} needs: "
                            "let fcompute return (body, reduce_init, reduce_update)")
    match = _match(nest, at, intrin)
    owner = nest.owner
    actuals: list[tuple[Place, list[PrimExpr]]] = []
    for t, low in match.inputs:
        place = owner.place(t)
        actuals.append((place, owner._relative(place, low)))
    for k in range(nest.op.num_outputs):
        place = owner.places[id(nest.info), k]
        actuals.append((place, owner._relative(place, match.output)))
    return _bind(stmt, intrin, actuals)


def _match(nest: StageNest, at: int, intrin: TensorIntrin) -> _Match:
    """Matches the intrinsic's axes and tensors with the stage's; ArgumentError says where they differ."""
    ctx, info, bounds = nest.ctx, nest.info, nest.owner.bounds
    standing = {id(o.loop_vars.get(id(iv))) for o, iv in info.fixed} | {id(info.loop_vars.get(id(iv))) for iv in nest.leaves[:at]}
    known = bounds._root_intervals(info, standing)

    def range_of(iv: IterVar) -> Interval:
        (number,) = ctx.var(iv.var).terms
        return known[number]

    env: Env = {}
    where = f"tensorize: {intrin.name} in {info.name}"
    data = [range_of(iv) for iv in nest.op.axis]
    _match_axes(nest, where, "output", nest.op.axis, data, intrin.op.axis, env)
    moving = [(iv, r) for iv in nest.op.reduce_axis for r in [range_of(iv)]]
    for iv, r in moving:
        env[id(iv.var)] = r[0]
    long = [(iv, r) for iv, r in moving if _size(nest, r) != 1]
    theirs = [iv for iv in intrin.op.reduce_axis if _extent(nest, iv) != 1]
    if len(long) != len(theirs):
        raise ArgumentError(f"{where}: expected {len(theirs)} reduction axes inside {nest.leaves[at].var.name}, got {len(long)}")
    _match_axes(nest, where, "reduction", [iv for iv, _ in long], [r for _, r in long], theirs, env)
    inputs = _input_regions(nest, known)
    if len(inputs) != len(intrin.inputs):
        raise ArgumentError(f"{where}: expected a computation over {len(intrin.inputs)} tensors, got {len(inputs)}")
    lows = [(t, [r[0] for r in region]) for t, region in inputs.items()]
    for (t, region), formal in zip(inputs.items(), intrin.inputs):
        _check_sizes(nest, f"{where}: input {t.name}", region, [nest.owner.bounds._index(d) for d in formal.shape])
    _check_body(nest, where, intrin, env, lows)
    return _Match(lows, [r[0] for r in data])


def _match_axes(nest: StageNest, where: str, what: str, axes: Sequence[IterVar], ranges: Sequence[Interval], theirs: Sequence[IterVar],
                env: Env) -> None:
    """Enters each axis of the stage as its first index plus the intrinsic's axis, aligned at the last."""
    _check_sizes(nest, f"{where}: {what}", ranges, [nest.ctx.const(_extent(nest, iv)) for iv in theirs])
    skipped = len(axes) - len(theirs)
    for i, (iv, r) in enumerate(zip(axes, ranges)):
        env[id(iv.var)] = r[0] if i < skipped else nest.ctx.add(r[0], nest.ctx.var(theirs[i - skipped].var, 0, _extent(nest, theirs[i - skipped]) - 1))


def _check_sizes(nest: StageNest, where: str, ranges: Sequence[Interval], wanted: Sequence[Lin]) -> None:
    got = [_size(nest, r) for r in ranges]
    want = [w.value for w in wanted]
    padded = [1] * (len(got) - len(want)) + want
    if got != padded:
        raise ArgumentError(f"{where} is expected to have the extents {want} inside the tensorized loops, got {got}")


def _size(nest: StageNest, r: Interval) -> int | None:
    return nest.ctx.add(nest.ctx.sub(r[1], r[0]), nest.ctx.const(1)).value


def _extent(nest: StageNest, iv: IterVar) -> int:
    value = nest.owner.bounds._index(iv.dom.extent).value
    if value is None:
        raise ArgumentError(f"tensorize: axis {iv.var.name} of the intrinsic has no constant extent")
    return value


def _input_regions(nest: StageNest, known: dict[int, Interval]) -> dict[Tensor, list[Interval]]:
    """What one call reads of each input, in the order of first use."""
    regions: dict[Tensor, list[Interval]] = {}
    for t, indices in nest.info.reads:
        read = [interval(nest.ctx, i, known) for i in indices]
        if any(r is None for r in read):
            raise ArgumentError(f"tensorize: which part of {t.name} is read in {nest.info.name} cannot be told")
        regions[t] = read if t not in regions else [nest.owner.bounds._union(a, b) for a, b in zip(regions[t], read)]  # type: ignore[assignment,misc]
    return regions


def _check_body(nest: StageNest, where: str, intrin: TensorIntrin, env: Env, lows: Sequence[tuple[Tensor, list[Lin]]]) -> None:
    """Compares what the stage computes with what the intrinsic says it does."""
    ctx = nest.ctx
    formal = {t: (f, low) for (t, low), f in zip(lows, intrin.inputs)}

    def ours_load(t: Tensor, indices: list[Lin]) -> PrimExpr:
        f, low = formal[t]
        relative = [ctx.expr(ctx.sub(i, b)) for i, b in zip(indices, low)]
        return ProducerLoad(f, relative[len(relative) - f.ndim:])

    body = intrin.op.body[0]
    theirs_sources = body.source if isinstance(body, Reduce) else intrin.op.body
    theirs = Evaluator(ctx, lambda t, i: ProducerLoad(t, [ctx.expr(x) for x in i])).run(theirs_sources, {})
    ours = Evaluator(ctx, ours_load).run(nest.info.values, env)
    pairs: list[tuple[Any, Any]] = list(zip(ours, theirs))
    if (nest.info.combiner is None) == isinstance(body, Reduce) or len(ours) != len(theirs):
        raise ArgumentError(f"{where}: one is a reduction and the other is not")
    if isinstance(body, Reduce):
        pairs.append((nest.info.combiner, body.combiner))
    for mine, wanted in pairs:
        path = first_difference(mine, wanted)
        if path is not None:
            raise ArgumentError(f"{where}: the stage does not compute what the intrinsic does ({path})")


def _bind(stmt: Stmt, intrin: TensorIntrin, actuals: Sequence[tuple[Place, list[PrimExpr]]]) -> Stmt:
    """The intrinsic's statement with its buffers replaced by parts of the stage's."""
    table: dict[int, tuple[Buffer, list[PrimExpr]]] = {}
    memo: dict[int, Any] = {}
    for formal, (place, low) in zip(intrin.buffers, actuals):
        actual = place.buffer
        table[id(formal)] = actual, low
        memo[id(formal.data)] = formal.data, actual.data
        strides = list(actual.strides) or compact_strides(actual.shape)
        memo.update({id(a): (a, b) for a, b in zip(formal.strides, strides[len(strides) - len(formal.strides):]) if isinstance(a, Var)})
        if isinstance(formal.elem_offset, Var):
            memo[id(formal.elem_offset)] = formal.elem_offset, _flat(low, strides, actual.elem_offset)

    def swap(node: Any) -> Any:
        if isinstance(node, (BufferLoad, BufferStore)) and id(node.buffer) in table:
            actual, low = table[id(node.buffer)]
            skipped = len(low) - len(node.indices)
            indices = [*low[:skipped], *(tir_op.add(i, b) for i, b in zip(node.indices, low[skipped:]))]
            return BufferLoad(actual, indices) if isinstance(node, BufferLoad) else BufferStore(actual, node.value, indices)
        return node

    return rewrite(stmt, swap, memo, lambda n: not isinstance(n, Buffer))  # type: ignore[return-value]


def _flat(low: Sequence[PrimExpr], strides: Sequence[PrimExpr], offset: PrimExpr) -> PrimExpr:
    total: PrimExpr = offset if not isinstance(offset, IntImm) else IntImm("int64", offset.value)
    for i, s in zip(low, strides):
        total = tir_op.add(total, tir_op.multiply(i, s))
    return total
