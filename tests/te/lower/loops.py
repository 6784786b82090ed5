"""What a statement looks like, as short lines; and random schedules of small graphs with their numpy meaning."""
from __future__ import annotations

import random
from typing import Any, Callable

import numpy as np

from anchorleg import te, tir
from anchorleg.tir import stmt as S

_OPS = {tir.Add: "+", tir.Sub: "-", tir.Mul: "*", tir.FloorDiv: "//", tir.FloorMod: "%", tir.LT: "<", tir.GE: ">=", tir.LE: "<=", tir.GT: ">",
        tir.And: "and", tir.Max: "max", tir.Min: "min", tir.Div: "/"}


def text(e: Any) -> str:
    """An expression on one line."""
    if isinstance(e, (tir.IntImm, tir.FloatImm)):
        return f"{e.value:g}"
    if isinstance(e, tir.Var):
        return e.name
    if type(e) in _OPS:
        return f"({text(e.a)} {_OPS[type(e)]} {text(e.b)})"
    if isinstance(e, tir.BufferLoad):
        return f"{e.buffer.name}[{', '.join(text(i) for i in e.indices)}]"
    if isinstance(e, tir.Call):
        return f"{e.op.name.removeprefix('tir.')}({', '.join(text(a) for a in e.args)})"
    if isinstance(e, tir.Cast):
        return f"{e.dtype}({text(e.value)})"
    return type(e).__name__


def lines(s: S.Stmt, indent: int = 0) -> list[str]:
    """A statement as indented lines."""
    pad = "  " * indent
    if isinstance(s, S.For):
        kind = "" if s.kind == S.ForKind.SERIAL else f" {s.kind.name.lower()}"
        return [f"{pad}for {s.loop_var.name} in {text(s.extent)}{kind}", *lines(s.body, indent + 1)]
    if isinstance(s, S.SeqStmt):
        return [line for each in s.seq for line in lines(each, indent)]
    if isinstance(s, S.BufferRealize):
        dims = ", ".join(text(r.extent) for r in s.bounds)
        return [f"{pad}{s.buffer.scope()} {s.buffer.name}[{dims}]", *lines(s.body, indent)]
    if isinstance(s, S.BufferStore):
        return [f"{pad}{s.buffer.name}[{', '.join(text(i) for i in s.indices)}] = {text(s.value)}"]
    if isinstance(s, S.IfThenElse):
        return [f"{pad}if {text(s.condition)}", *lines(s.then_case, indent + 1)]
    if isinstance(s, S.AttrStmt):
        return [f"{pad}{s.attr_key} {text(s.value)}", *lines(s.body, indent)]
    if isinstance(s, S.LetStmt):
        return [f"{pad}let {s.var.name} = {text(s.value)}", *lines(s.body, indent)]
    return [f"{pad}{type(s).__name__}"]


def f32(v: float) -> tir.PrimExpr:
    return tir.const(float(v), "float32")


class Graph:
    """Inputs, tensors in between, the output, and the function of the inputs that the output is."""

    def __init__(self, inputs: list[Any], middle: list[Any], output: Any, meaning: Callable[..., np.ndarray]) -> None:
        self.inputs, self.middle, self.output, self.meaning = inputs, middle, output, meaning


def elementwise(n: int, m: int, k: int) -> Graph:
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * f32(2), name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + a[i, j], name="C")
    d = te.compute((m, n), lambda i, j: c[j, i] * b[j, i], name="D")
    return Graph([a], [b, c], d, lambda x: (3 * x * 2 * x).T)


def matmul(n: int, m: int, k: int) -> Graph:
    a, w, r = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="W"), te.reduce_axis((0, k), name="k")
    p = te.compute((n, k), lambda i, j: a[i, j] + f32(1), name="P")
    c = te.compute((n, m), lambda i, j: te.sum(p[i, r] * w[r, j], axis=r), name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] * f32(3), name="D")
    return Graph([a, w], [p, c], d, lambda x, y: ((x + 1) @ y) * 3)


def padded_conv(n: int, m: int, k: int) -> Graph:
    a, w, r = te.placeholder((n, m), name="A"), te.placeholder((3,), name="W"), te.reduce_axis((0, 3), name="k")
    p = te.compute((n, m + 2), lambda i, j: te.if_then_else(te.all(j >= 1, j < m + 1), a[i, j - 1], f32(0)), name="P")
    c = te.compute((n, m), lambda i, j: te.sum(p[i, j + r] * w[r], axis=r), name="C")
    d = te.compute((n, m), lambda i, j: te.max(c[i, j], f32(0.5)), name="D")

    def meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        q = np.pad(x, ((0, 0), (1, 1)))
        return np.maximum(sum(q[:, i:i + m] * y[i] for i in range(3)), 0.5)

    return Graph([a, w], [p, c], d, meaning)


def reshapes(n: int, m: int, k: int) -> Graph:
    a = te.placeholder((n, m), name="A")
    b = te.compute((n * m,), lambda x: a[x // m, x % m] + f32(1), name="B")
    c = te.compute((m, n), lambda i, j: b[i * n + j] * f32(2), name="C")
    d = te.compute((m * n,), lambda x: c[x // n, x % n] - f32(1), name="D")
    return Graph([a], [b, c], d, lambda x: (x.ravel() + 1) * 2 - 1)


def two_reductions(n: int, m: int, k: int) -> Graph:
    a, r, q = te.placeholder((n, m), name="A"), te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="q")
    top = te.compute((n,), lambda i: te.max(a[i, r], axis=r), name="M")
    e = te.compute((n, m), lambda i, j: a[i, j] - top[i], name="E")
    s = te.compute((n,), lambda i: te.sum(e[i, q], axis=q), name="S")
    d = te.compute((n, m), lambda i, j: e[i, j] * s[i], name="D")

    def meaning(x: np.ndarray) -> np.ndarray:
        y = x - x.max(1, keepdims=True)
        return y * y.sum(1, keepdims=True)

    return Graph([a], [top, e, s], d, meaning)


def two_outputs(n: int, m: int, k: int) -> Graph:
    a = te.placeholder((n, m), name="A")
    b, c = te.compute((n, m), lambda i, j: (a[i, j] + f32(1), a[i, j] * f32(2)), name="BC")
    d = te.compute((n, m), lambda i, j: b[i, j] * c[n - 1 - i, j], name="D")
    return Graph([a], [b], d, lambda x: (x + 1) * (x[::-1] * 2))


def to_scalar(n: int, m: int, k: int) -> Graph:
    a, r, q = te.placeholder((n, m), name="A"), te.reduce_axis((0, n), name="k"), te.reduce_axis((0, m), name="q")
    b = te.compute((m, n), lambda i, j: a[j, i] + f32(1), name="B")
    d = te.compute((1,), lambda x: te.sum(b[q, r] * a[r, q], axis=[r, q]), name="D")
    return Graph([a], [b], d, lambda x: np.array([((x + 1) * x).sum()]))


GRAPHS = [elementwise, matmul, padded_conv, reshapes, two_reductions, two_outputs, to_scalar]


def random_axes(rnd: random.Random, stage: te.Stage) -> None:
    """A few random splits, fuses and reorders."""
    for _ in range(rnd.randint(0, 5)):
        loops = stage.leaf_iter_vars
        what = rnd.choice(["factor", "nparts", "fuse", "reorder", "reorder"])
        if what in ("factor", "nparts"):
            stage.split(rnd.choice(loops), **{what: rnd.choice([1, 2, 3, 4, 5, 7])})
        elif what == "reorder":
            stage.reorder(*rnd.sample(loops, len(loops)))
        elif len(loops) > 1:
            at = rnd.randrange(len(loops) - 1)
            if (loops[at].iter_type == 2) == (loops[at + 1].iter_type == 2):
                stage.fuse(loops[at], loops[at + 1])


def readers_of(s: te.Schedule, stage: te.Stage) -> list[te.Stage]:
    return [c for c in s.stages if any(s.stage_of_op(t.op) is stage for t in c.op.input_tensors)]


def random_schedule(rnd: random.Random, g: Graph) -> te.Schedule:
    """A random schedule; it may place a stage out of its reader's reach, which lowering must refuse."""
    s = te.create_schedule(g.output.op)
    for t in [*g.middle, g.output]:
        if rnd.random() < 0.2 and t.op.num_outputs == 1:
            s.cache_write(t, "local")
    for t in [*g.inputs, *g.middle]:
        readers = [c.op for c in readers_of(s, s[t]) if any(q.value_index == t.value_index and s.stage_of_op(q.op) is s[t] for q in c.op.input_tensors)]
        if readers and rnd.random() < 0.15:
            s.cache_read(t, "local", readers)
    for stage in [x for x in s.stages if isinstance(x.op, te.ComputeOp)]:
        random_axes(rnd, stage)
        reduced = [iv for iv in stage.leaf_iter_vars if iv.iter_type == 2]
        if reduced and rnd.random() < 0.2:
            s.rfactor(stage.op.output(0), rnd.choice(reduced), rnd.choice([0, -1]))
    for stage in reversed([x for x in s.stages if isinstance(x.op, te.ComputeOp) and not x.is_output]):
        last, where = readers_of(s, stage)[-1], rnd.random()
        if where < 0.25 and not stage.op.reduce_axis:
            stage.compute_inline()
        elif where < 0.8 and last.attach_type != te.AttachType.INLINE:
            stage.compute_at(last, rnd.choice(last.leaf_iter_vars if rnd.random() < 0.7 else last.all_iter_vars))
    return s


def mark_loops(rnd: random.Random, s: te.Schedule) -> None:
    """Random unrolled and vectorized loops."""
    for stage in s.stages:
        for iv in stage.leaf_iter_vars:
            if rnd.random() < 0.15:
                stage.unroll(iv)
        if stage.leaf_iter_vars and rnd.random() < 0.3 and stage.leaf_iter_vars[-1].iter_type != 2:
            stage.vectorize(stage.leaf_iter_vars[-1])
