"""Altering layouts keeps data packed across operators that can work on it as it is."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.ir.module import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.build_module import optimize
from anchorleg.relay.expr import Call
from anchorleg.ir.visit import post_order

TARGET = "llvm -mcpu=x86-64-v4 -mtriple=x86_64-linux-gnu"


def conv(data, inputs, outputs, kernel=1):
    w = relay.const(np.ones((outputs, inputs, kernel, kernel), "float32"))
    return relay.nn.conv2d(data, w, padding=(kernel // 2,) * 2, channels=outputs, kernel_size=(kernel, kernel))


def transforms(body, data):
    with PassContext(opt_level=3):
        mod, _ = optimize(IRModule.from_expr(relay.Function([data], body)), TARGET)
    return [(c.attrs.src_layout, c.attrs.dst_layout) for c in post_order(mod["main"].body)
            if isinstance(c, Call) and getattr(c.op, "name", "") == "layout_transform"]


def test_a_convolution_sums_over_the_blocks_it_is_given():
    x = relay.var("x", shape=(1, 16, 10, 10))
    joined = relay.concatenate([conv(x, 16, 24), conv(x, 16, 24)], axis=1)  # 24 channels pack by 8, 48 could by 16
    assert transforms(conv(joined, 48, 16), x) == [("NCHW", "NCHW16c"), ("NCHW16c", "NCHW")]


def test_resizing_keeps_channels_packed():
    x = relay.var("x", shape=(1, 16, 10, 10))
    resized = relay.image.resize2d(conv(x, 16, 32), size=(20, 20), method="linear")
    assert transforms(conv(resized, 32, 16), x) == [("NCHW", "NCHW16c"), ("NCHW16c", "NCHW")]
