"""Type relations: what is inferred, also with unknown dimensions and backwards, and what is refused."""
from __future__ import annotations

import pytest
from nn_harness import infer

from anchorleg import relay
from anchorleg.ir.expr import Any
from anchorleg.relay import nn
from anchorleg.support.errors import AnchorlegError

UNKNOWN = Any()


def dims(t):
    return tuple(None if isinstance(d, Any) else d for d in t.dims)


@pytest.mark.parametrize("build, types, want", [
    (lambda x, w: nn.conv2d(x, w, strides=2, padding=(3, 3)), [(1, 3, 224, 224), (64, 3, 7, 7)], (1, 64, 112, 112)),
    (lambda x, w: nn.conv2d(x, w, kernel_size=3, channels=16, groups=2), [(UNKNOWN,) * 4, (16, 16, 3, 3)], (None, 16, None, None)),
    (lambda x, w: nn.conv2d(x, w, kernel_size=3, channels=16, groups=2), [(1, 32, 8, 8), (16, 16, 3, 3)], (1, 16, 6, 6)),
    (lambda x, w: nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"), [(1, 32, 32, 3), (1, 1, 3, 3)], (1, 32, 32, 3)),
    (lambda x, w: nn.conv2d(x, w, out_layout="NHWC", out_dtype="float64"), [(1, 3, 5, 5), (4, 3, 1, 1)], (1, 5, 5, 4)),
    (lambda x, w: nn.conv3d(x, w, kernel_size=1, channels=2, groups=2), [(1, 4, 8, 8, 8), (2, 2, 1, 1, 1)], (1, 2, 8, 8, 8)),
    (lambda x, w: nn.conv3d(x, w, channels=4, groups=4, kernel_size=1), [(1, 16, 224, 224, 224), (4, 4, 1, 1, 1)], (1, 4, 224, 224, 224)),
    (lambda x, w: nn.conv3d_transpose(x, w, channels=12, kernel_size=3), [(1, 10, 8, 8, 8), (10, 12, 3, 3, 3)], (1, 12, 10, 10, 10)),
    (lambda x, w: nn.conv1d_transpose(x, w), [(1, 10, 8), (10, 12, 3)], (1, 12, 10)),
    (lambda x, w: nn.conv2d_transpose(x, w, groups=2, strides=(1, 1)), [(1, 2, 1, 1), (2, 1, 1, 1)], (1, 2, 1, 1)),
    (lambda x, w: nn.dense(x, w), [(UNKNOWN, 4), (7, 4)], (None, 7)),
    (lambda x, w: nn.dense(x, w), [(3,), (3, 3)], (3,)),
    (lambda a, b: nn.batch_matmul(a, b), [(UNKNOWN, 2, 3), (4, 5, 3)], (4, 2, 5)),
    (lambda x: nn.avg_pool2d(x, (1, 2), (1, 2), ceil_mode=True, count_include_pad=True), [(1, 1, 1, 9)], (1, 1, 1, 5)),
    (lambda x: nn.avg_pool1d(x, 1, 2, ceil_mode=True), [(1, 6, 4)], (1, 6, 2)),
    (lambda x: nn.max_pool2d(x, 3, 2, padding=1, layout="NCHW16c"), [(1, 4, 7, UNKNOWN, 16)], (1, 4, 4, None, 16)),
    (lambda x: nn.batch_flatten(x), [(UNKNOWN, 3, 4)], (None, 12)),
    (lambda x: nn.pad(x, ((0, 0), (1, 2))), [(UNKNOWN, 3)], (None, 6)),
    (lambda x: nn.upsampling(x, 1.5, 2), [(1, 1, 3, 4)], (1, 1, 5, 8)),
])
def test_inferred_shape(build, types, want):
    result, _ = infer(build, *types)
    assert dims(result) == want


@pytest.mark.parametrize("build, types, at, want", [
    (lambda x, w: nn.conv2d(x, w, channels=8, kernel_size=(3, 5)), [(1, 4, 9, 9), None], 1, (8, 4, 3, 5)),
    (lambda x, w: nn.conv2d(x, w, channels=8, kernel_size=3, data_layout="NHWC", kernel_layout="HWIO"), [(1, 9, 9, 4), None], 1, (3, 3, 4, 8)),
    (lambda x, w: nn.conv2d_transpose(x, w, channels=8, kernel_size=(3, 3), groups=2), [(1, 4, 9, 9), None], 1, (4, 4, 3, 3)),
    (lambda x, w: nn.dense(x, w, units=5), [(3, 4), None], 1, (5, 4)),
    (lambda x, b: nn.bias_add(x, b, -1), [(3, 4), None], 1, (4,)),
    (lambda x, g, b, m, v: nn.batch_norm(x, g, b, m, v), [(1, 4, 3, 3), None, None, None, None], 4, (4,)),
    (lambda x, g, b: nn.layer_norm(x, g, b), [(3, 4), None, None], 2, (4,)),
    (lambda x, a: nn.prelu(x, a), [(3, 4), None], 1, (4,)),
])
def test_inferred_backwards(build, types, at, want):
    _, params = infer(build, *types)
    assert dims(params[at]) == want


@pytest.mark.parametrize("build, types, says", [
    (lambda x, w: nn.conv2d(x, w, kernel_size=3, channels=16, groups=2), [(1, 16, 8, 8), (16, 16, 3, 3)], r"\(16, 8, 3, 3\), got \(16, 16, 3, 3\)"),
    (lambda x, w: nn.conv2d(x, w), [(1, 4, 8, 8), (16, 3, 3, 3)], "expected weight of shape"),
    (lambda x, w: nn.conv2d(x, w), [(1, 3, 2, 2), (16, 3, 3, 3)], "does not fit"),
    (lambda x, w: nn.conv2d(x, w, groups=2), [(1, 3, 8, 8), (4, 1, 3, 3)], "do not fall into 2 groups"),
    (lambda x, w: nn.conv2d(x, w, data_layout="NCW"), [(1, 3, 8, 8), (4, 3, 3, 3)], "data_layout"),
    (lambda x, w: nn.conv2d(x, w, strides=(1, 0)), [(1, 3, 8, 8), (4, 3, 3, 3)], "must be positive"),
    (lambda x, w: nn.conv3d_transpose(x, w), [(1, 10, 8, 8, 8), (12, 10, 3, 3, 3)], "expected weight of shape"),
    (lambda x, w: nn.dense(x, w), [(3, 4), (5, 6)], "nn.dense: expected weight"),
    (lambda x, w: nn.matmul(x, w), [(3, 4), (4,)], "rank 2"),
    (lambda x, w: nn.batch_matmul(x, w), [(3, 4, 5), (3, 6, 7)], "inner extents"),
    (lambda x, w: nn.batch_matmul(x, w), [(3, 4, 5), (2, 6, 5)], "batch extents"),
    (lambda x, b: nn.bias_add(x, b, 0), [(), ()], "out of range"),
    (lambda x, b: nn.bias_add(x, b, -1), [(), ()], "out of range"),
    (lambda x, b: nn.bias_add(x, b, -3), [(), ()], "out of range"),
    (lambda x, b: nn.bias_add(x, b, 1), [(), ()], "out of range"),
    (lambda x, b: nn.bias_add(x, b), [(2, 3), (4,)], "expected bias of shape"),
    (lambda x: nn.softmax(x, 2), [(2, 3)], "out of range"),
    (lambda x: nn.max_pool2d(x, 9), [(1, 1, 4, 4)], "does not fit"),
    (lambda x: nn.max_pool2d(x, 2, layout="NCHW4h"), [(1, 1, 4, 4, 4)], "unsplit"),
    (lambda x: nn.pad(x, ((0, 0),)), [(2, 3)], "pad_width"),
    (lambda x: nn.depth_to_space(x, 2), [(1, 6, 2, 2)], "cannot be divided"),
    (lambda x, g, b: nn.group_norm(x, g, b, 4), [(1, 6, 2, 2), (6,), (6,)], "do not fall into 4 groups"),
])
def test_refused(build, types, says):
    with pytest.raises(AnchorlegError, match=says):
        infer(build, *types)


@pytest.mark.parametrize("padding, want", [(1, (1, 1, 1, 1)), ((1, 2), (1, 2, 1, 2)), ((1, 2, 3, 4), (1, 2, 3, 4))])
def test_padding_forms(padding, want):
    assert nn.conv2d(relay.var("x"), relay.var("w"), padding=padding).attrs.padding == want


def test_wrong_number_of_paddings():
    with pytest.raises(AnchorlegError, match="expected 1, 2 or 4 values, got 3"):
        nn.conv2d(relay.var("x"), relay.var("w"), padding=(1, 2, 3))


def test_attributes_in_the_text_formats_order():
    assert nn.conv2d(relay.var("x"), relay.var("w")).attrs.keys() == [
        "strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout", "kernel_layout", "out_layout", "out_dtype"]
    assert nn.matmul(relay.var("x"), relay.var("w"), transpose_b=True).op.name == "nn.dense"
