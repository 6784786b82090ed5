"""Which convolutions are computed by minimal filtering, and that a build with and without it agrees."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.graph_executor import GraphModule
from anchorleg.ir.module import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.build_module import optimize
from anchorleg.runtime.device import cpu
from anchorleg.topi.nn.winograd import tile_blocks, winograd_tile_size

TARGET = "llvm -mcpu=x86-64-v3 -mtriple=x86_64-linux-gnu"
WINOGRAD = "nn.contrib_conv2d_winograd_without_weight_transform"


def network(data_layout="NCHW", kernel_layout="OIHW", strides=1, kernel=3, constant=True):
    rng = np.random.default_rng(1)
    sizes = {"N": 1, "C": 32, "H": 15, "W": 18}
    x = relay.var("x", shape=[sizes[a] for a in data_layout])
    taps = {"O": 32, "I": 32, "H": kernel, "W": kernel}
    values = (rng.standard_normal([taps[a] for a in kernel_layout]) / 16).astype("float32")
    w = relay.const(values) if constant else relay.var("w", shape=values.shape)
    y = relay.nn.conv2d(x, w, strides=(strides, strides), padding=(1, 1), channels=32, kernel_size=(kernel, kernel), data_layout=data_layout,
                        kernel_layout=kernel_layout)
    y = relay.nn.relu(y)
    return IRModule.from_expr(relay.Function([x] if constant else [x, w], relay.add(y, y)))


def chosen(mod, target=TARGET, **config):
    with PassContext(opt_level=3, config=config):
        return WINOGRAD in str(optimize(mod, target)[0])


def test_chosen_for_3x3_of_stride_1_with_known_weights():
    assert chosen(network())
    assert chosen(network("NHWC", "HWIO"))
    assert not chosen(network(strides=2))
    assert not chosen(network(kernel=1))
    assert not chosen(network(constant=False))


def test_the_option_turns_it_off():
    assert not chosen(network(), **{"relay.backend.use_winograd": False})
    assert chosen(network(), **{"relay.backend.use_winograd": True})


@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_agrees_with_the_direct_convolution(layouts):
    results = []
    for use in (True, False):
        mod = network(*layouts)
        with PassContext(opt_level=3, config={"relay.backend.use_winograd": use}):
            lib = relay.build(mod, "llvm")
        module = GraphModule(lib["default"](cpu(0)))
        data = np.random.default_rng(3).standard_normal(mod["main"].params[0].type_annotation.concrete_shape).astype("float32")
        module.run(x=data)
        results.append(module.get_output(0).numpy())
    assert np.abs(results[0] - results[1]).max() <= 1e-5 * np.abs(results[1]).max()


@pytest.mark.parametrize("height,width", [(56, 56), (28, 28), (14, 14), (7, 7), (13, 17), (1, 1), (3, 200)])
@pytest.mark.parametrize("m", [2, 4])
def test_blocks_cover_the_map_and_fit_the_registers(m, height, width):
    blocks = tile_blocks(m, height, width, 32)
    assert blocks.rows * blocks.cols <= 28
    assert blocks.count(height, width) * blocks.rows * blocks.cols * m * m >= height * width


def test_tile_sizes_by_shape():
    assert winograd_tile_size(56, 56, 64, 64, 16, 32) == 4
    assert winograd_tile_size(1, 1, 64, 64, 16, 32) == 0


def test_only_implementations_that_take_the_inputs_are_offered() -> None:
    """Tuning tries every implementation offered: a general one that can't take packed weights must not be among them."""
    from anchorleg import te
    from anchorleg.ir.op import Op
    from anchorleg.ir.type import TensorType
    from anchorleg.relay.backend.te_compiler import get_valid_implementations
    from anchorleg.relay.op.registry import make_attrs
    from anchorleg.target import Target

    name = "nn.contrib_conv2d_winograd_without_weight_transform"
    attrs = make_attrs(name, tile_size=4, kernel_size=[3, 3], padding=[1, 1, 1, 1], channels=16, data_layout="NCHW16c",
                       kernel_layout="OHWI16i16o", out_layout="NCHW16c")
    inputs = [te.placeholder((1, 1, 8, 8, 16)), te.placeholder((1, 6, 6, 1, 16, 16))]
    out_type = TensorType((1, 1, 8, 8, 16))
    found = get_valid_implementations(Op.get(name), attrs, inputs, out_type, Target("llvm"))
    assert len(found) == 1 and found[0].compute(attrs, inputs, out_type)
