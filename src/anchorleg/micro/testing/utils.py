"""Small models for tests."""
from __future__ import annotations

from typing import Any

from ... import relay
from ...ir.module import IRModule


def get_conv2d_relay_module() -> Any:
    """A convolution of int8 with int32 results."""
    data = relay.var("data", shape=(1, 3, 64, 64), dtype="int8")
    weight = relay.var("weight", shape=(8, 3, 5, 5), dtype="int8")
    body = relay.nn.conv2d(data, weight, padding=(2, 2), channels=8, kernel_size=(5, 5), data_layout="NCHW", kernel_layout="OIHW", out_dtype="int32")
    return relay.transform.InferType()(IRModule.from_expr(relay.Function([data, weight], body)))
