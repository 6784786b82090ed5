"""Schedule primitives: what they do to the list of loops, and what they refuse."""
from __future__ import annotations

import pytest

from anchorleg import te
from anchorleg.ir.transform import PassContext
from anchorleg.support.errors import ArgumentError


@pytest.fixture
def matmul() -> tuple:
    a, b, k = te.placeholder((8, 6), name="A"), te.placeholder((6, 4), name="B"), te.reduce_axis((0, 6), name="k")
    c = te.compute((8, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_schedule(c.op), a, b, c, k


def names(stage: te.Stage) -> list[str]:
    return [iv.var.name for iv in stage.leaf_iter_vars]


def test_stages_come_producers_first(matmul: tuple) -> None:
    s, a, b, c, _ = matmul
    assert [x.op.name for x in s.stages] == ["A", "B", "C"]
    assert s[c].is_output and s[a] is s[a.op]


def test_split_fuse_reorder_tile(matmul: tuple) -> None:
    s, _, _, c, k = matmul
    i, j = c.op.axis
    s[c].tile(i, j, 2, 2)
    assert names(s[c]) == ["i.outer", "j.outer", "i.inner", "j.inner", "k"]
    io, jo, ii, ji, _ = s[c].leaf_iter_vars
    s[c].reorder(k, ji)
    assert names(s[c]) == ["i.outer", "j.outer", "i.inner", "k", "j.inner"]
    fused = s[c].fuse(io, jo, ii)
    assert names(s[c]) == ["i.outer.j.outer.fused.i.inner.fused", "k", "j.inner"]
    assert s[c].leaf_iter_vars[0] is fused


def test_fuse_of_nothing_makes_a_loop_for_scalars() -> None:
    c = te.compute((), lambda: te.const(1.0, "float32"))
    s = te.create_schedule(c.op)
    s[c].fuse()
    assert names(s[c]) == ["singleton"]


@pytest.mark.parametrize("edit, message", [
    (lambda s, c, k: s[c].split(k), "exactly one"),
    (lambda s, c, k: s[c].split(k, factor=0), "at least 1"),
    (lambda s, c, k: s[c].vectorize(k), "reduction axis"),
    (lambda s, c, k: s[c].parallel(k), "reduction axis"),
    (lambda s, c, k: s[c].fuse(c.op.axis[0], k), "not consecutive"),
    (lambda s, c, k: s[c].fuse(c.op.axis[1], k), "cannot be fused with another kind"),
    (lambda s, c, k: s[c].reorder(k, k), "twice"),
    (lambda s, c, k: s[c].unroll(te.reduce_axis((0, 3), name="other")), "other is no loop"),
    (lambda s, c, k: s[c].compute_at(s[c], k), "inside itself"),
    (lambda s, c, k: s[c].bind(k, k), "te.thread_axis"),
    (lambda s, c, k: s[c].storage_align(k, 8, 0), "no output axis"),
    (lambda s, c, k: s[te.placeholder((3,), name="stranger")], "no stage for stranger"),
])
def test_misuse_is_refused(matmul: tuple, edit: object, message: str) -> None:
    s, _, _, c, k = matmul
    with pytest.raises(ArgumentError, match=message):
        edit(s, c, k)  # type: ignore[operator]


def test_split_axis_is_no_loop_any_more(matmul: tuple) -> None:
    s, _, _, c, k = matmul
    s[c].split(k, factor=2)
    with pytest.raises(ArgumentError, match="k is no loop"):
        s[c].split(k, factor=2)


def test_cache_write_moves_the_reduction(matmul: tuple) -> None:
    s, _, _, c, k = matmul
    acc = s.cache_write(c, "local")
    assert names(s[acc]) == ["i.c", "j.c", "k"] and names(s[c]) == ["i", "j"]
    assert s[acc].scope == "local" and s[acc].op.reduce_axis == (k,)
    assert s[c].origin_op is c.op and s[c].op.input_tensors == (acc,)


def test_cache_write_after_split_is_refused(matmul: tuple) -> None:
    s, _, _, c, k = matmul
    s[c].split(k, factor=2)
    with pytest.raises(ArgumentError, match="before splitting"):
        s.cache_write(c, "local")


def test_cache_read_is_seen_only_by_the_named_readers() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "local", [c])
    assert s[c].op.input_tensors == (copy, b) and s[b].op.input_tensors == (a,)
    with pytest.raises(ArgumentError, match="does not read"):
        s.cache_read(b, "local", [b])


def test_rfactor_makes_parts_and_keeps_the_data_loops(matmul: tuple) -> None:
    s, _, _, c, k = matmul
    ko, ki = s[c].split(k, factor=4)
    io, _ = s[c].split(c.op.axis[0], factor=2)
    parts = s.rfactor(c, ki, factor_axis=-1)
    assert [int(d) for d in parts.shape] == [8, 4, 4]
    assert names(s[parts]) == ["i", "j", "k.inner", "k.outer"]
    assert names(s[c]) == ["i.outer", "i.inner", "j", "k.inner.v"]


def test_steps_are_kept_on_request():
    a = te.placeholder((16, 16), name="a")
    b = te.compute((16, 16), lambda i, j: a[i, j] + 1.0, name="b")
    assert te.create_schedule(b.op).schedule_record == []
    with PassContext(config={"te.keep_schedule_record": True}):
        s = te.create_schedule(b.op)
    copied = s.cache_read(a, "local", [b])
    xo, yo, xi, yi = s[b].tile(*s[b].op.axis, 4, 8)
    s[b].vectorize(yi)
    s[copied].compute_at(s[b], yo)
    s[b].fuse(xo, yo)
    assert s.primitive_record == ["vanilla", "cache_read", "split", "split", "reorder", "vectorize", "compute_at", "fuse"]
    loops = [len(r[b].leaf_iter_vars) for r in s.schedule_record]
    assert loops == [2, 2, 3, 4, 4, 4, 4, 3] and len(s[b].leaf_iter_vars) == 3
    before, after = s.schedule_record[5:7]
    assert before[copied].attach_stage is None and after[copied].attach_stage is after[b] is not s[b]
    assert not after.keep_schedule_record and len(before.stages) == len(s.schedule_record[0].stages) + 1
    with pytest.raises(ArgumentError):
        s[b].split(xo, factor=2)
    assert len(s.schedule_record) == 8  # what failed is no step


def test_copies_of_schedules_go_their_own_way():
    a = te.placeholder((16,), name="a")
    b = te.compute((16,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    copied = s.copy()
    outer, inner = copied[b].split(b.op.axis[0], factor=4)
    copied[b].pragma(outer, "unroll_explicit")
    assert len(s[b].leaf_iter_vars) == 1 and len(copied[b].leaf_iter_vars) == 2 and not s[b].iter_var_attrs
