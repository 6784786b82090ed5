"""SimplifyInference: normalisations in one arithmetic form, with the values they had."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import relay

from .passes import count, of, same_values, unchanged


def vectors(n: int, size: int) -> list[relay.Expr]:
    rng = np.random.default_rng(n)
    return [relay.const(rng.uniform(0.5, 1.5, size).astype("float32")) for _ in range(n)]


@pytest.mark.parametrize("axis, shape", [(1, (2, 3, 4, 4)), (-1, (2, 4, 3)), (3, (2, 4, 4, 3)), (0, (3, 2))])
@pytest.mark.parametrize("center, scale", [(True, True), (False, True), (True, False), (False, False)])
def test_batch_norm(axis: int, shape: tuple[int, ...], center: bool, scale: bool) -> None:
    x = relay.var("x", shape=shape)
    y = relay.nn.batch_norm(x, *vectors(4, 3), axis=axis, epsilon=1e-3, center=center, scale=scale)[0]
    assert not count(same_values("SimplifyInference", of(y), rtol=1e-4), "nn.batch_norm")


def test_batch_norm_whose_statistics_are_read_stays() -> None:
    x = relay.var("x", shape=(2, 3))
    norm = relay.nn.batch_norm(x, *vectors(4, 3))
    mod = same_values("SimplifyInference", of(relay.Tuple([norm[0], norm[1]])))
    assert count(mod, "nn.batch_norm") == 1


@pytest.mark.parametrize("make", [
    lambda x: relay.nn.layer_norm(x, *vectors(2, 4)),
    lambda x: relay.nn.layer_norm(x, *vectors(2, 3), axis=1, center=False),
    lambda x: relay.nn.instance_norm(x, *vectors(2, 3)),
    lambda x: relay.nn.instance_norm(x, *vectors(2, 4), axis=-1, scale=False),
    lambda x: relay.nn.l2_normalize(x, 1e-3, axis=[1]),
    lambda x: relay.nn.l2_normalize(x, 1e-3, axis=[1, 2]),
])
def test_other_normalisations(make: Any) -> None:
    mod = same_values("SimplifyInference", of(make(relay.var("x", shape=(2, 3, 4)))), rtol=1e-4)
    assert not count(mod, "nn.layer_norm", "nn.instance_norm", "nn.l2_normalize")


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    x = relay.var("x", shape=(2, 4, 3, 3))
    mod = same_values("SimplifyInference", of(relay.nn.group_norm(x, *vectors(2, 4), num_groups=groups)), rtol=1e-4)
    assert not count(mod, "nn.group_norm")


def test_dropout_is_its_input() -> None:
    mod = same_values("SimplifyInference", of(relay.nn.dropout(relay.var("x", shape=(2, 3)), 0.9)))
    assert isinstance(mod["main"].body, relay.Var)


def test_other_operators_are_let_alone() -> None:
    unchanged("SimplifyInference", "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(nn.relu(%x)) }")
