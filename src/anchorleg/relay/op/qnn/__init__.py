"""Operators over quantised tensors (``relay.qnn.op``): integers q that stand for scale * (q - zero_point)."""
from __future__ import annotations

from .arithmetic import abs, add, concatenate, erf, exp, hardswish, leaky_relu, log, mul, rsqrt, sigmoid, softmax, sqrt, subtract, tanh
from .matrix import avg_pool2d, batch_matmul, contrib_dense_pack, conv2d, conv2d_transpose, dense
from .quantize import (current_requantize_config, dequantize, quantize, requantize, requantize_config, simulated_dequantize,
                       simulated_quantize)

__all__ = [name for name in dir() if not name.startswith("_") and name != "annotations"]
