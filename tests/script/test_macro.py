"""Macros: statements written where the macro is called."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg.ir import assert_structural_equal
from anchorleg.script import ScriptError
from anchorleg.script import tir as T
from anchorleg.support.errors import ArgumentError
from anchorleg.tir import run_primfunc

FACTOR = 3


@T.macro
def scaled(A, i, by=2):
    A[i] = A[i] * by * FACTOR


def test_a_macro_is_its_statements() -> None:
    @T.prim_func(private=True)
    def with_macro(A: T.Buffer((4,), "int32")):
        for i in range(4):
            scaled(A, i)
        scaled(A, 0, by=5)

    @T.prim_func(private=True)
    def without(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = A[i] * 2 * 3
        A[0] = A[0] * 5 * 3

    assert_structural_equal(with_macro, without)
    assert with_macro.body.seq[1].span.line == scaled.func.__code__.co_firstlineno + 2


@pytest.mark.parametrize("hygienic, want", [(True, 1), (False, 2)])
def test_where_free_names_come_from(hygienic: bool, want: int) -> None:
    value = 1

    @T.macro(hygienic=hygienic)
    def put(A):
        A[0] = value

    def build():  # noqa: ANN202
        value = 2  # noqa: F841

        @T.prim_func
        def f(A: T.Buffer((1,), "int32")):
            put(A)
            A[0] = A[0] * (value - 1)

        return f

    a = np.zeros(1, "int32")
    run_primfunc(build(), a)
    assert a[0] == want


def test_names_of_a_macro_end_with_it_and_its_allocations_do_not() -> None:
    @T.macro
    def scratch(A):
        p = T.allocate([4], "int32", "local")
        P = T.Buffer((4,), "int32", data=p)
        P[0] = A[0]
        A[1] = P[0]

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        scratch(A)
        scratch(A)

    a = np.array([7, 0, 0, 0], "int32")
    run_primfunc(f, a)
    assert a[1] == 7
    with pytest.raises(ScriptError, match="'P' is not defined"):
        @T.prim_func
        def g(A: T.Buffer((4,), "int32")):
            scratch(A)
            A[0] = P[0]  # noqa: F821


def test_errors_in_a_macro_name_its_line() -> None:
    @T.macro
    def wrong(A):
        A[0] = nowhere  # noqa: F821

    with pytest.raises(ScriptError, match="nowhere") as caught:
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            wrong(A)

    assert caught.value.line == wrong.func.__code__.co_firstlineno + 2


def test_options_are_keywords() -> None:
    with pytest.raises(ArgumentError, match="hygienic="):
        T.macro(True)
