"""Planes resized where sizes or scales are known to a running model only, against ONNX Runtime."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from anchorleg import relay
from anchorleg.relay.frontend import from_onnx
from anchorleg.support.errors import UnsupportedOpError

from .models import check, check_many, model, ours, runtime
from .models import single as one
from .test_dynamic_inputs import f, i64, single

pytest.importorskip("onnxruntime")


SIZES = ((1, 4, 5, 8, 10), (2, 6, 3, 3, 7), (1, 1, 1, 4, 4), (1, 8, 8, 1, 1))  # batch, plane before, plane after


@pytest.mark.parametrize("mode, coordinates", [("linear", "half_pixel"), ("linear", "align_corners"), ("linear", "pytorch_half_pixel"), ("cubic", "half_pixel"),
                                               ("nearest", "asymmetric"), ("nearest", "half_pixel"), ("linear", "half_pixel_symmetric"),
                                               ("nearest", "half_pixel_symmetric")])
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


ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
HALVES = ((7, 4), (14, 19), (18, 21), (20, 26), (23, 28), (5, 1), (7, 1), (58, 69), (54, 61))  # widths whose positions in float32 are beside a half or a whole number


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"])
def test_positions_beside_a_half_are_rounded_as_halves(coordinates: str, rounding: str) -> None:
    feeds = [{"x": f(2, 2, 3, a), "sizes": i64(2, 2, 3, b)} for a, b in HALVES]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, ("x", "", "", "sizes"), mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"])
def test_known_planes_take_the_pixels_that_float32_finds(coordinates: str, rounding: str) -> None:
    for scale in (1.3, 0.7, 0.6, 1 / 3, 2):
        attributes = dict(mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=coordinates)
        check(*one("Resize", [f(1, 2, 3, 15), None, np.array([1, 1, 1, scale], np.float32)], 13, fixed=[2], **attributes))


@pytest.mark.parametrize("sizes", HALVES)
def test_known_planes_of_known_sizes_take_the_pixels_that_float32_finds(sizes: tuple[int, int]) -> None:
    for rounding in ROUNDINGS:
        for coordinates in ("asymmetric", "half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"):
            attributes = dict(mode="nearest", nearest_mode=rounding, coordinate_transformation_mode=coordinates)
            check(*one("Resize", [f(1, 2, 3, sizes[0]), None, None, i64(1, 2, 3, sizes[1])], 13, fixed=[3], **attributes))


BY_KERNEL = [({"mode": "linear"}, 2.0), ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, 1.5),
             ({"mode": "linear", "coordinate_transformation_mode": "asymmetric"}, 3.0), *(({"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": r}, s)
               for r, s in (("round_prefer_floor", 2.0), ("round_prefer_ceil", 6.0), ("ceil", 3.0))),
             *(({"mode": "nearest", "coordinate_transformation_mode": c, "nearest_mode": r}, 3.0)
               for c in ("half_pixel", "pytorch_half_pixel", "align_corners") for r in ("floor", "ceil"))]


@pytest.mark.parametrize("attributes, scale", BY_KERNEL)
def test_scales_that_sizes_tell_are_one_kernel(attributes: dict[str, Any], scale: float) -> None:
    feeds = [{"x": f(n, 2, h, w)} for n, h, w in ((1, 4, 5), (2, 6, 3), (1, 1, 1))]
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attributes)
    proto = model([node], feeds[0], ["y"], 13, {"scales": np.array([1, 1, scale, 2], np.float32)}, {"x": ["n", 2, "h", "w"]})
    assert "dyn.image.resize2d" in str(from_onnx(proto)[0])
    check_many(proto, feeds)


@pytest.mark.parametrize("scales", [(1.5, 2.0), (0.5, 1.0), (1.3, 0.7)])
def test_scales_that_sizes_do_not_tell_are_kept(scales: tuple[float, float]) -> None:
    feeds = [{"x": f(n, 2, h, w)} for n, h, w in ((1, 4, 5), (2, 7, 3), (1, 9, 11))]
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    proto = model([node], feeds[0], ["y"], 13, {"scales": np.array([1, 1, *scales], np.float32)}, {"x": ["n", 2, "h", "w"]})
    assert "image.resize2d" not in str(from_onnx(proto)[0])
    check_many(proto, feeds)


def test_planes_of_unknown_sizes_to_known_sizes() -> None:
    feeds = [{"x": f(n, 2, h, w)} for n, h, w in ((1, 4, 5), (2, 6, 3), (1, 1, 1), (1, 9, 3))]
    nodes = [helper.make_node("Shape", ["x"], ["lead"], end=2), helper.make_node("Concat", ["lead", "plane"], ["sizes"], axis=0),
             helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")]
    proto = model(nodes, feeds[0], ["y"], 18, {"plane": i64(6, 5)}, {"x": ["n", 2, "h", "w"]})
    assert "dyn.image" not in (text := str(from_onnx(proto)[0])) and "image.resize2d" in text
    check_many(proto, feeds)


PLANES = ((1, 5, 7), (2, 8, 4), (1, 1, 3))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_planes_of_unknown_sizes_that_keep_their_proportions(policy: str, mode: str) -> None:
    feeds = [{"x": f(n, 2, h, w), "sizes": i64(a, b)} for (n, h, w), a, b in zip(PLANES, (9, 3, 4), (9, 20, 5))]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, ("x", "", "", "sizes"), mode=mode, axes=[2, 3], keep_aspect_ratio_policy=policy)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_known_planes_that_keep_their_proportions(policy: str) -> None:
    for _, h, w in PLANES:
        check(*one("Resize", [f(1, 2, h, w), None, None, i64(4, 9)], 18, fixed=[3], mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_regions_and_sizes_that_are_inputs(mode: str) -> None:
    regions = ([0, 0, .2, .3, 1, 1, .8, .6], [0, 0, .4, -.2, 1, 1, 1.2, .7], [0, 0, 0, 0, 1, 1, 1, 1])
    feeds = [{"x": f(n, 2, h, w), "roi": np.array(r, np.float32), "sizes": i64(n, 2, 4, b)} for (n, h, w), r, b in zip(PLANES, regions, (5, 1, 3))]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, ("x", "roi", "", "sizes"), mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
           extrapolation_value=7.0)


@pytest.mark.parametrize("scale", [2.0, 0.6])
def test_cubic_weights_of_planes_of_unknown_sizes_without_what_is_outside(scale: float) -> None:
    feeds = [{"x": f(n, 2, h, w), "scales": np.array([1, 1, scale, 1.5], np.float32)} for n, h, w in ((1, 5, 7), (2, 8, 4))]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, ("x", "", "scales"), mode="cubic", exclude_outside=1)


@pytest.mark.parametrize("scales", [(2, 2), (0.6, 0.6), (1.3, 0.7)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_old_models_rounds_up_where_it_shrinks(mode: str, scales: tuple[float, float]) -> None:
    wanted = np.array([1, 1, *scales], np.float32)
    feeds = [{"x": f(n, 2, h, w), "scales": wanted} for n, h, w in ((1, 5, 7), (2, 8, 4))]
    single("Resize", feeds, {"x": ["n", 2, "h", "w"]}, opset=10, mode=mode)
    single("Resize", [{"x": d["x"]} for d in feeds], {"x": ["n", 2, "h", "w"]}, ("x", "scales"), opset=10, constants={"scales": wanted}, mode=mode)
    check(*one("Resize", [feeds[0]["x"], wanted], 10, fixed=[1], mode=mode))


def test_half_floats_are_averaged_in_float32() -> None:
    x = (100 * f(1, 2, 5, 7)).astype(np.float16)
    proto, feed = one("Resize", [x, None, np.array([1, 1, 1.3, 0.7], np.float32)], 13, fixed=[2], mode="linear")
    (got,), (want,) = ours(proto, feed), runtime(proto, feed)
    np.testing.assert_array_max_ulp(np.asarray(got), want, maxulp=1)  # an average half way between two numbers may fall either way
    assert np.mean(np.asarray(got) == want) > 0.9


def segmentation(*way: Any) -> list[Any]:
    """A head at half of the size, resized to that of the image the given way, and a convolution of the result."""
    return [helper.make_node("Conv", ["x", "v"], ["half"], strides=[2, 2], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["half"], ["a"]), *way,
            helper.make_node("Conv", ["b", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]


SIZES_OF_THE_IMAGE = [
    helper.make_node("Shape", ["a"], ["s"]), helper.make_node("Slice", ["s", "zero", "two"], ["lead"]), helper.make_node("Shape", ["x"], ["t"]),
    helper.make_node("Slice", ["t", "two", "four"], ["plane"]), helper.make_node("Concat", ["lead", "plane"], ["sizes"], axis=0),
    helper.make_node("Resize", ["a", "", "", "sizes"], ["b"], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")]
DOUBLED = [
    helper.make_node("Shape", ["a"], ["s"]), helper.make_node("Slice", ["s", "zero", "two"], ["lead"]), helper.make_node("Slice", ["s", "two", "four"], ["p"]),
    helper.make_node("Mul", ["p", "two"], ["plane"]), helper.make_node("Concat", ["lead", "plane"], ["sizes"], axis=0),
    helper.make_node("Resize", ["a", "", "", "sizes"], ["b"], mode="linear", coordinate_transformation_mode="align_corners")]
SCALES_OF_THE_IMAGE = [
    helper.make_node("Shape", ["a"], ["s"]), helper.make_node("Slice", ["s", "two", "four"], ["p"]), helper.make_node("Cast", ["p"], ["below"], to=1),
    helper.make_node("Shape", ["x"], ["t"]), helper.make_node("Slice", ["t", "two", "four"], ["q"]), helper.make_node("Cast", ["q"], ["above"], to=1),
    helper.make_node("Div", ["above", "below"], ["ratio"]), helper.make_node("Concat", ["ones", "ratio"], ["scales"], axis=0),
    helper.make_node("Resize", ["a", "", "scales"], ["b"], mode="linear")]


@pytest.mark.parametrize("way", [SIZES_OF_THE_IMAGE, DOUBLED, SCALES_OF_THE_IMAGE], ids=["sizes", "doubled", "scales"])
def test_a_head_resized_as_networks_say_it_is_compiled(way: list[Any]) -> None:
    feeds = [{"x": f(n, 3, h, w)} for n, h, w in ((1, 8, 12), (2, 9, 7), (1, 2, 2))]
    constants = {"v": f(16, 3, 3, 3), "w": f(4, 16, 3, 3), "zero": i64(0), "two": i64(2), "four": i64(4), "ones": np.ones(2, np.float32)}
    proto = model(segmentation(*way), feeds[0], ["y"], 13, constants, {"x": ["n", 3, "h", "w"]})
    made = relay.vm.compile(from_onnx(proto)[0], "llvm")
    assert [e.name for e in made.packed if e.kind == "host"] == []
    check_many(proto, feeds, 1e-4)


def test_a_way_of_resampling_that_needs_sizes_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="antialias needs the sizes of the axes"):
        single("Resize", [{"x": f(1, 2, 4, 4), "sizes": i64(1, 2, 2, 2)}], {"x": ["n", 2, "h", "w"]}, ("x", "", "", "sizes"), mode="linear", antialias=1)
