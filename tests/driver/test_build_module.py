"""``lower``: what it takes, and the passes it runs."""
from __future__ import annotations

import pytest

from anchorleg import te
from anchorleg.driver import get_binds, lower, schedule_to_module
from anchorleg.driver.pipeline import lowering_passes
from anchorleg.ir.transform import ModulePass, PassContext, PassInfo
from anchorleg.support.errors import ArgumentError


def add_one() -> tuple[te.Schedule, list]:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    return te.create_schedule(b.op), [a, b]


def test_schedule_becomes_a_named_function() -> None:
    s, args = add_one()
    mod = lower(s, args, name="add_one")
    assert mod["add_one"].get_attr("global_symbol") == "add_one"
    assert [p.name for p in mod["add_one"].params] == ["A", "B"]


def test_schedule_without_arguments_is_refused() -> None:
    with pytest.raises(ArgumentError, match="needs args="):
        lower(add_one()[0])


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(ArgumentError, match="expects a te.Schedule, PrimFunc or IRModule, got int"):
        lower(3)  # type: ignore[arg-type]


def test_binds_give_a_tensor_a_buffer() -> None:
    s, (a, b) = add_one()
    binds, arguments = get_binds([a, b])
    func = schedule_to_module(s, [a, b], "f", binds)["f"]
    assert func.buffers[0] is binds[a] is arguments[0]


def test_added_pass_runs_in_its_phase() -> None:
    seen: list[str] = []

    def note(mod, ctx):  # type: ignore[no-untyped-def]
        seen.append("mine")
        return mod

    s, args = add_one()
    with PassContext(config={"tir.add_lower_pass": [(1, ModulePass(note, PassInfo(0, "Mine")))]}):
        names = [p.info.name for p in lowering_passes()]
        lower(s, args)
    assert seen == ["mine"] and "Mine" in names
