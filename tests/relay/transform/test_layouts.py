"""AlterOpLayout and ConvertLayout: known traps, and values on random convolutional graphs."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.structural import structural_equal
from anchorleg.ir.transform import PassContext
from anchorleg.relay.testing.temp_op_attr import TempOpAttr
from anchorleg.relay.transform import ConvertLayout
from anchorleg.support.errors import AnchorlegError
from anchorleg.target import Target

from .cnn import network
from .passes import apply, check, count, inputs, of, same_values, unchanged

NHWC = {"nn.conv2d": ["NHWC", "default"]}
PACKED = {"nn.conv2d": ["NCHW4c", "OIHW4o"]}


def flat(value: Any) -> list[np.ndarray]:
    """The arrays of a result, tuples within tuples laid out in order."""
    stack, found = [value], []
    while stack:
        each = stack.pop()
        if hasattr(each, "numpy"):
            found.append(each.numpy())
        else:
            stack.extend(reversed(list(getattr(each, "fields", each))))
    return found


def evaluate(mod: IRModule, args: list[np.ndarray]) -> list[np.ndarray]:
    return flat(relay.create_executor("debug", mod=mod, target="numpy").evaluate()(*args))


def alter(mod: IRModule) -> IRModule:
    """Moved to the layouts of a processor with vectors."""
    with PassContext(opt_level=3), Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"):
        return apply("AlterOpLayout", apply("CanonicalizeOps", mod))


def agree(before: IRModule, after: IRModule) -> None:
    args = inputs(before)
    for got, want in zip(evaluate(after, args), evaluate(before, args), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(want).max(initial=0))))


@pytest.mark.parametrize("first", range(0, 120, 10))
def test_random_networks_keep_their_values_when_altered(first: int) -> None:
    for seed in range(first, first + 10):
        mod = network(seed)
        agree(mod, alter(mod))


@pytest.mark.parametrize("layouts", [NHWC, PACKED, {**NHWC, "nn.max_pool2d": ["NHWC"], "nn.avg_pool2d": ["NCHW"]}])
def test_random_networks_keep_their_values_when_converted(layouts: dict[str, list[str]]) -> None:
    for seed in range(200, 240):
        mod = network(seed)
        agree(mod, apply(ConvertLayout(layouts), mod))


def test_altering_twice_changes_nothing_more() -> None:
    once = alter(network(7))
    assert structural_equal(alter(once), once)


def test_a_graph_without_convolutions_is_the_same_object() -> None:
    unchanged("AlterOpLayout", "def @main(%x: Tensor[(1, 8, 4, 4), float32]) { (nn.relu(%x), sum(%x, axis=[1])) }")
    unchanged(ConvertLayout(NHWC), "def @main(%x: Tensor[(1, 8, 4, 4), float32]) { nn.max_pool2d(%x, pool_size=[2, 2]) }")


def test_neighbours_follow_into_channels_last() -> None:
    check(ConvertLayout(NHWC), """
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  nn.max_pool2d(nn.relu(nn.conv2d(%x, %w)), pool_size=[2, 2])
}""", """
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
  %2 = nn.relu(nn.conv2d(%0, %1, data_layout="NHWC", kernel_layout="HWIO"));
  layout_transform(nn.max_pool2d(%2, pool_size=[2, 2], layout="NHWC"), src_layout="NHWC", dst_layout="NCHW")
}""")


def test_a_depthwise_convolution_gets_its_own_kernel_layout() -> None:
    x, w = relay.var("x", shape=(1, 8, 5, 5)), relay.var("w", shape=(8, 1, 3, 3))
    mod = same_values(ConvertLayout(NHWC), of(relay.nn.conv2d(x, w, groups=8, channels=8, kernel_size=(3, 3))))
    assert 'kernel_layout="HWOI"' in mod.astext()


@pytest.mark.parametrize("operator, expr", [
    ("nn.conv1d", lambda: relay.nn.conv1d(relay.var("x", shape=(1, 3, 9)), relay.var("w", shape=(4, 3, 3)))),
    ("nn.conv2d_transpose", lambda: relay.nn.conv2d_transpose(relay.var("x", shape=(1, 3, 5, 5)), relay.var("w", shape=(3, 4, 3, 3)), channels=4,
                                                              kernel_size=(3, 3))),
])
def test_other_convolutions(operator: str, expr: Any) -> None:
    wanted = "NWC" if operator == "nn.conv1d" else "NHWC"
    mod = same_values(ConvertLayout({operator: [wanted, "default"]}), of(expr()))
    assert f'data_layout="{wanted}"' in mod.astext()


def test_offsets_of_a_deformable_convolution_move_with_the_data() -> None:
    x, o, w = relay.var("x", shape=(1, 3, 5, 5)), relay.var("o", shape=(1, 18, 3, 3)), relay.var("w", shape=(4, 3, 3, 3))
    body = relay.nn.deformable_conv2d(x, o, w, channels=4, kernel_size=(3, 3))
    same_values(ConvertLayout({"nn.deformable_conv2d": ["NHWC", "default"]}), of(relay.Function([x, o, w], body)))


def test_resizes_and_softmax_take_channels_last() -> None:
    x, w = relay.var("x", shape=(1, 3, 5, 5)), relay.var("w", shape=(4, 3, 1, 1))
    y = relay.image.resize2d(relay.nn.softmax(relay.nn.conv2d(x, w), axis=1), (7, 7))
    mod = same_values(ConvertLayout(NHWC), of(relay.Function([x, w], y)))
    assert count(mod, "layout_transform") == 3


def test_tensors_of_unequal_axis_names_meet_in_the_programs_layout() -> None:
    """One convolution's NCHW result is another's NHWC input: the same bytes under other letters."""
    x, w = relay.var("x", shape=(1, 8, 8, 8)), relay.var("w", shape=(8, 8, 1, 1))
    y = relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=8)
    z = relay.nn.conv2d(y, relay.var("v", shape=(1, 1, 8, 8)), data_layout="NHWC", kernel_layout="HWIO", kernel_size=(1, 1), channels=8)
    mod = of(relay.add(z, y))
    agree(mod, alter(mod))
    agree(mod, apply(ConvertLayout(NHWC), mod))


def test_an_unknown_conversion_is_refused() -> None:
    with pytest.raises(AnchorlegError, match="no rule"):
        ConvertLayout({"nn.relu": ["NHWC"]})
    with pytest.raises(AnchorlegError, match="default"):
        ConvertLayout({"nn.conv2d": ["default", "default"]})(network(1))


def test_altered_arguments_are_packed_too() -> None:
    """The weight that altering computes is moved to the layout that the new attributes name."""
    def double(attrs: Any, args: Any, tinfos: Any, out_type: Any) -> relay.Expr:
        data, weight = args
        changed = {**dict(attrs.items()), "data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o"}
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0)), **changed)

    x, w = relay.var("x", shape=(1, 8, 5, 5)), relay.var("w", shape=(8, 8, 1, 1))
    body = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=8))
    mod = of(relay.Function([x, w], body))
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", double):
        after = apply("AlterOpLayout", mod)
    args = inputs(mod)
    np.testing.assert_allclose(evaluate(after, args)[0], 2 * evaluate(mod, args)[0], rtol=1e-5)
    assert count(after, "layout_transform") == 3


def test_strides_are_not_forgotten_when_channels_are_packed() -> None:
    x = relay.var("x", shape=(4, 12, 1, 1))
    y = relay.nn.bias_add(relay.nn.conv2d(x, relay.const(np.ones((9, 12, 1, 1), "float32"))), relay.const(np.ones(9, "float32")))
    mod = of(relay.strided_slice(y, [3], [6], [3], axes=[1]))
    agree(mod, alter(mod))
    assert alter(mod)["main"].body.checked_type.concrete_shape == (4, 1, 1, 1)


@pytest.mark.parametrize("channels", [1, 8])
def test_reductions_over_packed_channels_unpack_first(channels: int) -> None:
    x = relay.var("x", shape=(1, channels if channels > 1 else 3, 48, 48))
    w = relay.var("w", shape=(channels, channels if channels > 1 else 3, 1, 1))
    mod = of(relay.Function([x, w], relay.argmin(relay.nn.conv2d(x, w, strides=(47, 47)), axis=[1])))
    agree(mod, alter(mod))


def test_indices_over_several_axes_count_in_the_programs_order() -> None:
    x, w = relay.var("x", shape=(1, 8, 5, 5)), relay.var("w", shape=(8, 8, 1, 1))
    mod = of(relay.Function([x, w], relay.argmax(relay.nn.conv2d(x, w), axis=[1, 2])))
    agree(mod, apply(ConvertLayout(NHWC), mod))


def test_a_constant_of_one_element_still_broadcasts() -> None:
    x = relay.var("x", shape=(1, 5, 5, 64))
    w = relay.const(np.random.default_rng(0).standard_normal((3, 3, 64, 64)).astype("float32"))
    y = relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO", channels=64, kernel_size=(3, 3))
    y = relay.nn.relu(relay.add(y, relay.const(np.ones(64, "float32"))))
    mod = of(relay.multiply(y, relay.const(np.array([0.1], "float32"))))
    agree(mod, alter(mod))


def test_broadcast_shapes_of_64_bits_are_welcome() -> None:
    x, w = relay.var("x", shape=(2, 3, 48, 48)), relay.var("w", shape=(1, 3, 1, 1))
    t = relay.nn.bias_add(relay.nn.conv2d(x, w, strides=(47, 47), channels=1), relay.const(np.ones(1, "float32")))
    mod = of(relay.Function([x, w], relay.add(t, relay.broadcast_to(t, relay.const(np.array([2, 1, 2, 2], "int64"))))))
    mod = apply("DynamicToStatic", mod)
    agree(mod, alter(mod))


def test_repacking_reads_within_bounds() -> None:
    x = relay.var("x", shape=(2, 5, 2, 2, 4))
    mod = of(relay.layout_transform(x, "NCHW4c", "NCHW2c"))
    (a,) = inputs(mod)
    want = np.stack([np.stack([a[:, (2 * c + j) // 4, :, :, (2 * c + j) % 4] for j in range(2)], axis=-1) for c in range(10)], axis=1)
    np.testing.assert_array_equal(evaluate(mod, [a])[0], want)
    np.testing.assert_array_equal(flat(relay.create_executor("graph", mod=mod, target="llvm").evaluate()(a))[0], want)
