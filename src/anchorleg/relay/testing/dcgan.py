"""The generator of DCGAN: random numbers to images by transposed convolutions (Radford et al., 2015)."""
from __future__ import annotations

from typing import Any

from ...ir.expr import RelayExpr
from ...ir.module import IRModule
from .. import op
from ..analysis import free_vars
from ..expr import var
from ..function import Function
from . import layers
from .init import create_workload


def _grow(data: RelayExpr, channels: int, name: str, layout: str, kernel_layout: str) -> RelayExpr:
    """Twice the height and width, ``channels`` channels, normalised."""
    return layers.conv2d_transpose(data, kernel_size=(4, 4), strides=(2, 2), padding=(1, 1), channels=channels, data_layout=layout,
                                   kernel_layout=kernel_layout, name=name)


def get_net(batch_size: int, random_len: int = 100, oshape: tuple[int, int, int] = (3, 64, 64), ngf: int = 128, code: Any = None,
            layout: str = "NCHW", dtype: str = "float32") -> Function:
    """The generator; ``oshape`` is the image's (channels, height, width)."""
    kernel_layout = "IOHW" if layout == "NCHW" else "HWIO"
    code = var("data", dtype=dtype, shape=(batch_size, random_len)) if code is None else code
    dense = op.nn.dense(code, var("dense_weight"), 4 * 4 * ngf * 8)
    body = op.reshape(op.nn.relu(dense), (-1, ngf * 8, 4, 4) if layout == "NCHW" else (-1, 4, 4, ngf * 8))
    for index, channels in enumerate((ngf * 4, ngf * 2, ngf), start=2):
        body = _grow(body, channels, f"g{index}", layout, kernel_layout)
        body = op.nn.relu(layers.batch_norm_infer(body, epsilon=1e-5, scale=False, axis=layout.index("C"), name=f"g{index}_bn"))
    body = op.tanh(_grow(body, oshape[0], "g5", layout, kernel_layout))
    return Function(free_vars(body), body)


def get_workload(batch_size: int, oshape: tuple[int, int, int] = (3, 64, 64), ngf: int = 128, random_len: int = 100, layout: str = "NCHW",
                 dtype: str = "float32") -> tuple[IRModule, dict[str, Any]]:
    """The generator as a module, and values for its parameters."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout=layout, dtype=dtype))
