"""Layouts and the conversion between them."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from anchorleg.ir import IntImm
from anchorleg.support.errors import ArgumentError, TypeMismatchError
from anchorleg.tir.data_layout import UNDEF, BijectiveLayout, Layout, bijective_layout, layout
from anchorleg.tir.expr import Var


def test_queries() -> None:
    it = layout("NCHW16c")
    assert len(it) == 5 and it.index_of("c") == 4 and it.index_of("D") == -1
    assert it.factor_of("C") == 16 and it.factor_of("c") == 16 and it.factor_of("H") == -1
    assert "c" in it and "X" not in it and it[1] == "C" and it[-1] == "c"
    assert it.split("H", 5, 2).name == "NCHW16c2h" and it.sub_layout(1, 2).name == "CH"
    assert not Layout(UNDEF).defined and Layout("NCHW") == Layout("NCHW") and Layout("NCHW") != Layout("NHWC")
    assert Layout("HW").expand_primal(Layout("NCHW")).name == "NCHW"


@pytest.mark.parametrize("text", ["NCHW16", "NCHWc", "NCHH", "NHW4c", "N?HW", "4NCHW", "NC0c"])
def test_not_a_layout(text: str) -> None:
    with pytest.raises(ArgumentError, match="layout"):
        Layout(text)


def test_shapes() -> None:
    way = bijective_layout("NCHW", "NCHW16c")
    assert way.forward_shape([1, 32, 7, 7]) == [1, 2, 7, 7, 16] and way.backward_shape([1, 2, 7, 7, 16]) == [1, 32, 7, 7]
    assert way.forward_shape([1, 3, 7, 7]) == [1, 1, 7, 7, 16]  # blocks are rounded up
    with pytest.raises(TypeMismatchError, match="block"):
        way.backward_shape([1, 2, 7, 7, 8])
    with pytest.raises(TypeMismatchError, match="rank 4"):
        way.forward_shape([1, 2])
    with pytest.raises(ArgumentError, match="same axes"):
        BijectiveLayout("NCHW", "NHW")


@pytest.mark.parametrize("src, dst, shape", [("NCHW", "NHWC", (2, 3, 4, 5)), ("NCHW", "NCHW4c", (1, 8, 2, 3)), ("NCHW4c", "NCHW2c", (1, 3, 2, 1, 4)),
                                             ("OIHW", "OIHW4i2o2i", (4, 8, 1, 2)), ("NHWC8c", "NCHW", (1, 2, 2, 2, 8))])
def test_indices_name_the_same_element(src: str, dst: str, shape: tuple[int, ...]) -> None:
    way = bijective_layout(src, dst)
    out = way.forward_shape(shape)
    seen = set()
    for index in itertools.product(*map(range, shape)):
        there = way.forward_index(index)
        assert all(0 <= i < n for i, n in zip(there, out)) and tuple(way.backward_index(there)) == index
        seen.add(tuple(there))
    assert len(seen) == np.prod(shape)


def test_expressions() -> None:
    c = Var("c")
    n, outer, h, w, inner = bijective_layout("NCHW", "NCHW4c").forward_index([IntImm("int64", 0), c, IntImm("int64", 0), IntImm("int64", 0)])
    assert type(outer).__name__ == "FloorDiv" and type(inner).__name__ == "FloorMod" and outer.a is c
