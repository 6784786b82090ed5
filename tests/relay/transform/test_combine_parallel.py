"""CombineParallelConv2D, CombineParallelDense and CombineParallelBatchMatmul."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.ir.transform import Pass
from anchorleg.relay.transform import CombineParallelBatchMatmul, CombineParallelConv2D, CombineParallelDense

from .passes import apply, check, count, of, same_values, unchanged

FLAT, STACKED = CombineParallelDense(2, to_batch=False), CombineParallelDense(2)


def weight(*shape: int) -> relay.Expr:
    return relay.const(np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32"))


def test_dense_layers_side_by_side() -> None:
    head = "def @main(%x: Tensor[(2, 4), float32], %v: Tensor[(3, 4), float32], %w: Tensor[(5, 4), float32]) "
    check(FLAT, head + "{ (nn.dense(%x, %v, units=None), nn.dense(%x, %w, units=None)) }", head + """{
  %0 = (%v, %w);
  %1 = nn.dense(%x, concatenate(%0), units=8);
  (strided_slice(%1, begin=[0, 0], end=[-1, 3], strides=[1, 1], slice_mode="size"),
   strided_slice(%1, begin=[0, 3], end=[-1, 5], strides=[1, 1], slice_mode="size"))
}""")


@pytest.mark.parametrize("each, many", [(FLAT, "nn.dense"), (STACKED, "nn.batch_matmul")])
def test_what_follows_all_branches_alike_moves_behind(each: Pass, many: str) -> None:
    x = relay.var("x", shape=(3, 4))
    ys = [relay.nn.relu(relay.add(relay.nn.dense(x, weight(5, 4)), weight(5))) for _ in range(3)]
    mod = same_values(each, of(relay.Tuple(ys)))
    assert count(mod, many) == 1 and count(mod, "nn.relu") == 1 and count(mod, "add") == 1


def test_layers_of_unequal_width_can_not_be_stacked() -> None:
    x = relay.var("x", shape=(3, 4))
    mod = of(relay.Tuple([relay.nn.dense(x, weight(5, 4)), relay.nn.dense(x, weight(6, 4))]))
    assert STACKED(mod) is mod
    assert count(same_values(FLAT, mod), "nn.dense") == 1


def test_scalars_are_repeated_for_their_branch() -> None:
    x = relay.var("x", shape=(3, 4))
    ys = [relay.multiply(relay.nn.dense(x, weight(n, 4)), relay.const(float(n))) for n in (5, 6)]
    assert count(same_values(FLAT, of(relay.Tuple(ys))), "multiply") == 1


@pytest.mark.parametrize("layout, kernel", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_convolutions(layout: str, kernel: str) -> None:
    x = relay.var("x", shape=(1, 4, 6, 6) if layout == "NCHW" else (1, 6, 6, 4))
    shapes = [(n, 4, 3, 3) if kernel == "OIHW" else (3, 3, 4, n) for n in (2, 3, 5)]
    ys = [relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weight(*s), data_layout=layout, kernel_layout=kernel), weight(n),
                                          axis=layout.index("C"))) for s, n in zip(shapes, (2, 3, 5))]
    mod = same_values(CombineParallelConv2D(2), of(relay.Tuple(ys)))
    assert count(mod, "nn.conv2d") == 1 and count(mod, "nn.relu") == 1


def test_convolutions_of_unlike_settings_stay() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    mod = of(relay.Tuple([relay.nn.conv2d(x, weight(2, 4, 3, 3)), relay.nn.conv2d(x, weight(2, 4, 3, 3), strides=(2, 2)),
                          relay.nn.conv2d(x, weight(2, 4, 1, 1)), relay.nn.conv2d(x, weight(4, 2, 3, 3), groups=2)]))
    assert CombineParallelConv2D(2)(mod) is mod


def test_fewer_branches_than_asked_for_stay() -> None:
    unchanged(CombineParallelDense(), "def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]) "
              "{ (nn.dense(%x, %w, units=None), nn.dense(%x, %w, units=None)) }")


@pytest.mark.parametrize("transpose_b", [True, False])
def test_batched_products(transpose_b: bool) -> None:
    x = relay.var("x", shape=(2, 3, 4))
    ws = [weight(2, n, 4) if transpose_b else weight(2, 4, n) for n in (5, 6, 7)]
    mod = same_values(CombineParallelBatchMatmul(), of(relay.Tuple([relay.nn.batch_matmul(x, w, transpose_b=transpose_b) for w in ws])))
    assert count(mod, "nn.batch_matmul") == 1


def test_blocks_in_a_row_are_combined_in_one_run() -> None:
    y: Any = relay.var("x", shape=(1, 4, 4, 4))
    for _ in range(30):
        y = relay.concatenate([relay.nn.conv2d(y, weight(2, 4, 1, 1)), relay.nn.conv2d(y, weight(2, 4, 1, 1))], axis=1)
    assert count(apply(CombineParallelConv2D(2), of(y)), "nn.conv2d") == 30


def test_a_branch_whose_weight_comes_from_another_branch_stays() -> None:
    x = relay.var("x", shape=(4, 4))
    first = relay.nn.dense(x, weight(4, 4))
    mod = of(relay.Tuple([first, relay.nn.dense(x, first), relay.nn.dense(x, relay.negative(first))]))
    assert count(same_values(FLAT, mod), "nn.dense") == 3


def test_an_operand_that_comes_from_another_branch_stays_outside() -> None:
    x = relay.var("x", shape=(4, 4))
    first = relay.add(relay.nn.dense(x, weight(4, 4)), weight(4, 4))
    second = relay.add(relay.nn.dense(x, weight(4, 4)), first)
    mod = same_values(FLAT, of(relay.Tuple([first, second])))
    assert count(mod, "nn.dense") == 1 and count(mod, "add") == 2


def test_branches_of_a_condition_are_not_joined() -> None:
    x, c = relay.var("x", shape=(2, 4)), relay.var("c", shape=(), dtype="bool")
    mod = of(relay.Function([c, x], relay.If(c, relay.nn.dense(x, weight(3, 4)), relay.nn.dense(x, weight(3, 4)))))
    assert FLAT(mod) is mod
