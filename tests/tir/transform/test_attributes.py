"""Attributes of functions, and picking functions."""
from __future__ import annotations

from anchorleg import tir
from anchorleg.ir import IRModule
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T
from anchorleg.target import Target
from anchorleg.tir.transform import AnnotateEntryFunc, BindTarget, Filter


@I.ir_module
class Two:
    @T.prim_func
    def outer(x: T.int32):
        T.evaluate(x)

    @T.prim_func(private=True)
    def inner(x: T.int32):
        T.evaluate(x)


def _targets(mod: IRModule) -> list[Target]:
    return [f.get_attr("target") for f in mod.functions.values()]


def test_targets_are_bound_with_the_host_for_exposed_functions() -> None:
    after = BindTarget(Target("cuda", host="llvm"))(Two)
    assert _targets(after) == [Target("cuda", host="llvm"), Target("cuda")]
    assert not Two["inner"].attrs


def test_a_target_that_is_there_stays_and_gets_a_host() -> None:
    own = Two["outer"].with_attr("target", Target("nvptx"))
    assert BindTarget(Target("cuda"))(IRModule({"f": own}))["f"] is own
    after = BindTarget(Target("cuda", host="llvm"))(IRModule({"f": own}))["f"]
    assert after.get_attr("target") == Target("nvptx", host="llvm")


def test_the_entry_is_the_only_function_or_the_only_exposed_one() -> None:
    after = AnnotateEntryFunc()(Two)
    assert after["outer"].get_attr("tir.is_entry_func") is True and after["inner"] is Two["inner"]
    assert AnnotateEntryFunc()(after) is after
    both = IRModule({"a": Two["outer"], "b": Two["outer"]})
    assert AnnotateEntryFunc()(both) is both
    assert AnnotateEntryFunc()(IRModule({"a": Two["inner"]}))["a"].get_attr("tir.is_entry_func") is True


def test_filter_keeps_what_the_condition_holds_for() -> None:
    assert list(Filter(lambda f: not f.attrs)(Two).functions) == [Two.get_global_var("inner")]
    assert Filter(lambda f: isinstance(f, tir.PrimFunc))(Two) is Two
