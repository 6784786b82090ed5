"""Planes resized where sizes or scales are known to a running model only, against ONNX Runtime."""
from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from anchorleg.support.errors import UnsupportedOpError

from .models import check_many, model
from .test_dynamic_inputs import f, i64, single

pytest.importorskip("onnxruntime")


SIZES = ((1, 4, 5, 8, 10), (2, 6, 3, 3, 7), (1, 1, 1, 4, 4), (1, 8, 8, 1, 1))  # batch, plane before, plane after


@pytest.mark.parametrize("mode, coordinates", [("linear", "half_pixel"), ("linear", "align_corners"), ("linear", "pytorch_half_pixel"), ("cubic", "half_pixel"),
                                               ("nearest", "asymmetric"), ("nearest", "half_pixel")])
def test_planes_of_unknown_sizes_resized_to_sizes_of_another_tensor(mode: str, coordinates: str) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["lead"], end=2), helper.make_node("Shape", ["like"], ["plane"], start=2),
             helper.make_node("Concat", ["lead", "plane"], ["sizes"], axis=0),
             helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, coordinate_transformation_mode=coordinates)]
    feeds = [{"x": f(n, 2, h, w), "like": f(1, 1, a, b)} for n, h, w, a, b in SIZES]
    check_many(model(nodes, feeds[0], ["y"], 18, shapes={"x": ["n", 2, "h", "w"], "like": [1, 1, "a", "b"]}), feeds)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_planes_resized_by_scales_that_are_an_input(mode: str) -> None:
    feeds = [{"x": f(n, 2, h, w), "scales": np.array([1, 1, a, b], np.float32)} for n, h, w, a, b in ((1, 4, 5, 2, 2), (2, 6, 3, .5, 2.5), (1, 10, 7, 1.3, .7))]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, ("x", "", "scales"), mode=mode)


def test_planes_of_unknown_sizes_resized_by_known_scales() -> None:
    feeds = [{"x": f(n, 2, h, w)} for n, h, w in ((1, 4, 5), (2, 6, 3), (1, 1, 1))]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, ("x", "", "scales"), constants={"scales": np.array([1, 1, 1.5, 2], np.float32)}, mode="linear")


def test_a_way_of_resampling_that_needs_sizes_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="antialias needs the sizes of the axes"):
        single("Resize", [{"x": f(1, 2, 4, 4), "sizes": i64(1, 2, 2, 2)}], {"x": ["n", 2, "h", "w"]}, ("x", "", "", "sizes"), mode="linear", antialias=1)
