"""Layout names, shapes, indices and array conversion."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from anchorleg.ir.expr import Any
from anchorleg.relay.op.transform.transpose import convert_layout
from anchorleg.support.errors import ArgumentError
from anchorleg.tir.data_layout import bijective_layout, layout


def test_parts_and_factors():
    lay = layout("NCHW16c")
    assert len(lay) == 5 and lay.ndim_primal == 4 and lay.index_of("c") == 4 and lay.factor_of("C") == 16
    assert lay.factor_of("H") == -1 and "c" in lay and "h" not in lay


@pytest.mark.parametrize("bad", ["NCHWc", "NCHW16d", "NNHW", "N-C", "16"])
def test_malformed_names_are_refused(bad):
    with pytest.raises(ArgumentError):
        layout(bad)


@pytest.mark.parametrize("src, dst", [("NCHW", "NHWC"), ("NCHW", "NCHW4c"), ("OIHW", "OIHW2i8o4i"), ("NCHW2c", "NCHW4c"),
                                      ("NHWC", "HWNC"), ("OIHW8o", "IHWO4i")])
def test_array_agrees_with_index_and_shape(src, dst):
    shape = (8, 8, 3, 2)
    plain = np.arange(np.prod(shape)).reshape(shape)
    primal = "".join(a for a in src if a.isupper())
    x = convert_layout(plain, primal, src)
    m = bijective_layout(src, dst)
    y = convert_layout(x, src, dst)
    assert tuple(m.forward_shape(x.shape)) == y.shape and tuple(m.backward_shape(y.shape)) == x.shape
    for index in itertools.islice(np.ndindex(*x.shape), 0, None, 7):
        assert y[tuple(m.forward_index(index))] == x[index]
        assert tuple(m.backward_index(m.forward_index(index))) == index


def test_unknown_dimensions_stay_unknown():
    out = bijective_layout("NCHW", "NCHW4c").forward_shape((1, Any(), 5, 6))
    assert isinstance(out[1], Any) and out[4] == 4


def test_blocks_are_rounded_up():
    assert bijective_layout("NCHW", "NCHW4c").forward_shape((1, 6, 5, 5)) == [1, 2, 5, 5, 4]


def test_other_axes_are_refused():
    with pytest.raises(ArgumentError):
        bijective_layout("NCHW", "NCW")
