"""Modules of a script: classes of functions that may call one another."""
from __future__ import annotations

import pytest

from anchorleg import tir
from anchorleg.ir import IRModule
from anchorleg.ir.expr import GlobalVar
from anchorleg.script import ScriptError, from_source, ir_module
from anchorleg.script import ir as I  # noqa: E741
from anchorleg.script import tir as T


@I.ir_module
class Outer:
    I.module_attrs({"version": 2})

    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        A[0] = Outer.helper(3)
        T.evaluate(cls.quiet(A))  # noqa: F821

    @T.prim_func(private=True)
    def helper(x: T.int32) -> T.int32:
        return x + 1

    @T.prim_func
    def quiet(A: T.Buffer((4,), "int32")):
        A[1] = 1


def test_functions_by_name_with_their_attributes() -> None:
    assert isinstance(Outer, IRModule)
    assert [g.name_hint for g in Outer.functions] == ["main", "helper", "quiet"]
    assert Outer.get_attr("version") == 2
    assert Outer["main"].get_attr("global_symbol") == "main" and Outer["helper"].get_attr("global_symbol") is None


def test_calls_name_functions_of_the_module_and_have_their_result_type() -> None:
    store, quiet = Outer["main"].body.seq
    assert store.value.op is Outer.get_global_var("helper") and store.value.dtype == "int32"
    assert quiet.value.op is Outer.get_global_var("quiet") and quiet.value.dtype == "void"
    assert quiet.value.args[0] is Outer["main"].buffers[0].data


def test_classes_of_one_name_in_one_file_are_told_apart() -> None:
    def first() -> IRModule:
        @ir_module
        class Same:
            @T.prim_func
            def one(x: T.int32):
                T.evaluate(x)

        return Same

    def second() -> IRModule:
        @ir_module
        class Same:
            @T.prim_func
            def two(x: T.int32):
                T.evaluate(x)

        return Same

    assert [g.name_hint for g in first().functions] == ["one"]
    assert [g.name_hint for g in second().functions] == ["two"]


def test_names_of_enclosing_functions() -> None:
    def make(size: int) -> IRModule:
        @ir_module
        class Sized:
            @T.prim_func
            def main(A: T.Buffer((size,), "int32")):
                A[size - 1] = 1

        return Sized

    assert make(5)["main"].buffers[0].shape[0].value == 5


def test_functions_in_a_plain_class_are_programs_of_their_own() -> None:
    class Plain:
        @T.prim_func
        def f(x: T.int32):
            T.evaluate(x)

    assert isinstance(Plain.f, tir.PrimFunc)


def test_a_text_with_a_class_or_several_functions_is_a_module() -> None:
    functions = '@T.prim_func\ndef f(x: T.int32):\n    T.evaluate(x)\n\n@T.prim_func\ndef g(x: T.int32):\n    T.evaluate(f(x))\n'
    mod = from_source("# from tvm.script import tir as T\n" + functions)
    assert isinstance(mod, IRModule) and mod["g"].body.value.op is mod.get_global_var("f")
    inside = "@I.ir_module\nclass M:\n" + "\n".join("    " + line for line in functions.replace("f(x))", "M.f(x))").splitlines())
    again = from_source(inside)
    assert [g.name_hint for g in again.functions] == ["f", "g"]


def test_global_variables_from_outside() -> None:
    callee = GlobalVar("other")

    @T.prim_func
    def f(x: T.int32):
        T.evaluate(callee(x))

    assert f.body.value.op is callee


def test_what_does_not_belong_into_a_module() -> None:
    with pytest.raises(ScriptError, match="functions and I.module_attrs"):
        from_source("@I.ir_module\nclass M:\n    x = 1\n")
    with pytest.raises(ScriptError, match="no function 'g'"):
        from_source("@I.ir_module\nclass M:\n    @T.prim_func\n    def f(x: T.int32):\n        T.evaluate(M.g(x))\n")
