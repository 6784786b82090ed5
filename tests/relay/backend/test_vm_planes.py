"""Convolutions, pools and their neighbours over batches and planes whose sizes only the inputs tell."""
from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np
import pytest

from anchorleg import IRModule, relay, transform
from anchorleg.relay.backend.vm import compile as vm_compile
from anchorleg.runtime.device import cpu
from anchorleg.runtime.vm import VirtualMachine

RNG = np.random.default_rng(3)
EDGES = (1, 2, 7, 8, 9, 16, 17)  # around the tiles of 8 columns, and those of 4 and 8 rows


def const(*shape: int) -> relay.Expr:
    return relay.const(RNG.standard_normal(shape).astype("float32"))


def conv(channels: int, outputs: int, size: int, stride: int = 1, groups: int = 1, pad: int | None = None, dilation: int = 1) -> Callable[[Any], Any]:
    weight, bias = const(outputs, channels // groups, size, size), const(outputs, 1, 1)

    def build(x: Any) -> Any:
        y = relay.nn.conv2d(x, weight, strides=(stride, stride), padding=(size // 2 if pad is None else pad,) * 2, groups=groups,
                            dilation=(dilation, dilation), channels=outputs, kernel_size=(size, size))
        return relay.nn.relu(relay.add(y, bias))

    return build


def residual(x: Any) -> Any:
    y = conv(32, 32, 3)(x)
    return relay.nn.relu(relay.add(conv(32, 32, 1)(y), y))


def branches(x: Any) -> Any:
    y = conv(8, 16, 3)(x)
    parts = [y, relay.nn.max_pool2d(y, (3, 3), (1, 1), padding=(1, 1)), relay.nn.avg_pool2d(y, (3, 3), (1, 1), padding=(1, 1))]
    return conv(48, 16, 1)(relay.concatenate(parts, 1))


def squeezed(x: Any) -> Any:
    y = conv(8, 16, 3, groups=8)(x)
    gate = relay.sigmoid(conv(16, 16, 1)(relay.nn.global_avg_pool2d(y)))
    return relay.multiply(y, gate)


def pyramid(x: Any) -> Any:
    once = conv(8, 16, 3, 2)(x)
    twice = conv(16, 16, 3, 2)(once)
    return conv(16, 16, 1)(relay.add(once, relay.nn.upsampling(twice, 2, 2)))


def transposed(size: int, stride: int, pad: int, more: int = 0) -> Callable[[Any], Any]:
    weight = const(16, 8, size, size)
    return lambda x: relay.nn.conv2d_transpose(x, weight, strides=(stride, stride), padding=(pad, pad), output_padding=(more, more), channels=8,
                                               kernel_size=(size, size))


NETS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "conv 3x3": (32, conv(32, 48, 3)), "conv 1x1": (16, conv(16, 64, 1)), "conv 3x3 by 2": (16, conv(16, 32, 3, 2)), "stem": (3, conv(3, 16, 3, 2)),
    "depthwise 3x3": (32, conv(32, 32, 3, 1, 32)), "depthwise 5x5 by 2": (16, conv(16, 16, 5, 2, 16)), "depthwise 9x9": (8, conv(8, 8, 9, 1, 8)),
    "groups": (32, conv(32, 32, 3, 1, 2)), "dilated": (16, conv(16, 16, 3, 1, 1, 2, 2)), "odd channels": (20, conv(20, 12, 3)), "residual": (32, residual),
    "max pool": (16, lambda x: relay.nn.max_pool2d(conv(16, 16, 1)(x), (3, 3), (2, 2), padding=(1, 1))),
    "branches": (8, branches), "squeezed": (8, squeezed),
    "transposed by 2": (16, transposed(4, 2, 1)), "transposed with more": (16, transposed(3, 2, 1, 1)), "transposed by 1": (16, transposed(3, 1, 1)),
    "transposed apart": (16, transposed(2, 3, 0)), "pyramid": (8, pyramid), "softmax": (16, lambda x: relay.nn.softmax(conv(16, 16, 1)(x), 1)),
}


@functools.lru_cache(maxsize=None)
def compiled(name: str) -> tuple[Any, Any]:
    channels, build = NETS[name]
    shape = (relay.Any(), channels, relay.Any(), relay.Any())
    x = relay.var("x", shape=shape)
    func = relay.Function([x], build(x))
    with transform.PassContext(opt_level=3):
        return vm_compile(IRModule.from_expr(func), "llvm"), relay.create_executor("debug", mod=IRModule.from_expr(func)).evaluate()


@pytest.mark.parametrize("name", NETS)
def test_networks_over_unknown_planes(name: str) -> None:
    exe, wanted = compiled(name)
    assert [e.name for e in exe.packed if e.kind == "host"] == []
    machine = VirtualMachine(exe, cpu())
    unit = 4 if name == "pyramid" else 1  # planes that halve twice
    for k, width in enumerate(EDGES):
        data = RNG.standard_normal((1 + k % 2, NETS[name][0], EDGES[-1 - k] * unit, width * unit)).astype("float32")
        want = wanted(data).numpy()
        np.testing.assert_allclose(machine.run(data).numpy(), want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max()))


@pytest.mark.parametrize("name", ["conv 1x1", "depthwise 3x3", "residual"])
def test_no_images_at_all(name: str) -> None:
    exe, _ = compiled(name)
    data = np.zeros((0, NETS[name][0], 5, 6), "float32")
    assert VirtualMachine(exe, cpu()).run(data).numpy().shape[0] == 0


@pytest.mark.parametrize("level, packed", [(0, False), (2, True), (3, True)])
def test_layouts_are_packed_from_the_default_level_on(level: int, packed: bool) -> None:
    x = relay.var("x", shape=(1, 16, relay.Any(), relay.Any()))
    with transform.PassContext(opt_level=level):
        exe = vm_compile(IRModule.from_expr(relay.Function([x], conv(16, 16, 1)(x))), "llvm")
    assert any("NCHWc" in e.name for e in exe.packed) == packed
    data = RNG.standard_normal((1, 16, 3, 9)).astype("float32")
    assert VirtualMachine(exe, cpu()).run(data).numpy().shape == (1, 16, 3, 9)
