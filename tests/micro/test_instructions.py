"""Generated kernels take no more instructions on an emulated board than the loops a person would write, compiled by the same compiler."""
from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.micro import create_project
from anchorleg.relay.op.qnn.canonicalize import fixed_point

from .models import build_c, module, qnn

pytestmark = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
                                reason="needs arm-none-eabi-gcc and qemu-system-arm")
HEAD = '#include <stdint.h>\n#include "tvmgen_default.h"\n'
ENTRY = "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs, struct tvmgen_default_outputs* outputs)"
SCALE = 0.0021
REQUANTIZE = """static int8_t requantize(int32_t sum) {
    const int32_t high = (int32_t)(((int64_t)sum * MULTIPLIER + (1 << 30)) >> 31);
    const int32_t rest = high & ((1 << SHIFT) - 1), half = ((1 << SHIFT) - 1) / 2 + (high < 0);
    const int32_t value = (high >> SHIFT) + (rest > half) - 3;
    return (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
}
"""


def _requantized(y: Any, bias: Any) -> Any:
    number = relay.const
    return qnn.requantize(relay.nn.bias_add(y, bias, axis=3), number(np.float32(SCALE)), number(np.int32(0)), number(np.float32(1)), number(np.int32(-3)),
                          rounding="TFLITE", out_dtype="int8")


def _int8_conv(taps: int, depthwise: bool) -> Any:
    channels, number = 96, relay.const
    x = relay.var("x", shape=(1, taps, 1, channels), dtype="int8")
    w = relay.var("w", shape=(taps, 1, channels, 1) if depthwise else (taps, 1, channels, channels), dtype="int8")
    bias = relay.var("bias", shape=(channels,), dtype="int32")
    y = qnn.conv2d(x, w, number(np.int32(0)), number(np.int32(0)), number(np.float32(1)), number(np.float32(1)), kernel_size=(taps, 1), channels=channels,
                   groups=channels if depthwise else 1, data_layout="NHWC", kernel_layout="HWOI" if depthwise else "HWIO", out_dtype="int32")
    return module([x, w, bias], _requantized(y, bias))


def _int8_plain(body: str) -> str:
    multiplier, exponent = fixed_point(np.float64(np.float32(SCALE)))
    return (f"{HEAD}#define MULTIPLIER {multiplier}\n#define SHIFT {-exponent}\n{REQUANTIZE}\n{ENTRY} {{\n    const int8_t *x = inputs->x, *w = inputs->w;\n"
            f"    const int32_t* bias = inputs->bias;\n    int8_t* y = outputs->output;\n    for (int o = 0; o < 96; ++o) {{\n        int32_t sum = bias[o];\n"
            f"        {body}\n        y[o] = requantize(sum);\n    }}\n    return 0;\n}}\n")


def _float_conv() -> Any:
    x, w, bias = (relay.var(n, shape=s, dtype="float32") for n, s in (("x", (1, 4, 12, 12)), ("w", (8, 4, 3, 3)), ("bias", (8,))))
    return module([x, w, bias], relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), bias)))


FLOAT_CONV = HEAD + ENTRY + """ {
    const float *x = inputs->x, *w = inputs->w, *bias = inputs->bias;
    float* y = outputs->output;
    for (int o = 0; o < 8; ++o)
        for (int row = 0; row < 12; ++row)
            for (int column = 0; column < 12; ++column) {
                float sum = bias[o];
                for (int c = 0; c < 4; ++c)
                    for (int i = 0; i < 3; ++i) {
                        const int r = row + i - 1;
                        if (r < 0 || r >= 12) continue;
                        for (int j = 0; j < 3; ++j) {
                            const int k = column + j - 1;
                            if (k >= 0 && k < 12) sum += x[(c * 12 + r) * 12 + k] * w[((o * 4 + c) * 3 + i) * 3 + j];
                        }
                    }
                y[(o * 12 + row) * 12 + column] = sum > 0.0f ? sum : 0.0f;
            }
    return 0;
}
"""


def _dense() -> Any:
    x, w = relay.var("x", shape=(1, 64), dtype="float32"), relay.var("w", shape=(48, 64), dtype="float32")
    return module([x, w], relay.nn.dense(x, w))


DENSE = HEAD + ENTRY + """ {
    const float *x = inputs->x, *w = inputs->w;
    float* y = outputs->output;
    for (int o = 0; o < 48; ++o) {
        float sum = 0.0f;
        for (int i = 0; i < 64; ++i) sum += x[i] * w[o * 64 + i];
        y[o] = sum;
    }
    return 0;
}
"""
KERNELS = {
    "pointwise int8": ("mps2-an385", lambda: _int8_conv(1, False), _int8_plain("for (int i = 0; i < 96; ++i) sum += x[i] * w[i * 96 + o];")),
    "five frames int8": ("mps2-an385", lambda: _int8_conv(5, False), _int8_plain("for (int i = 0; i < 480; ++i) sum += x[i] * w[i * 96 + o];")),
    "depthwise int8": ("mps2-an385", lambda: _int8_conv(5, True), _int8_plain("for (int i = 0; i < 5; ++i) sum += x[i * 96 + o] * w[i * 96 + o];")),
    "padded convolution": ("mps2-an500", _float_conv, FLOAT_CONV),
    "dense": ("mps2-an500", _dense, DENSE),
}


@pytest.mark.parametrize("optimisation", ["-O2", "-Os"])
@pytest.mark.parametrize("name", KERNELS)
def test_no_more_instructions_than_plain_loops(name: str, optimisation: str, tmp_path: Any) -> None:
    board, network, plain = KERNELS[name]
    project = create_project(build_c(network()), tmp_path, board)
    makefile = (tmp_path / "Makefile").read_text().replace("-O2", optimisation)
    (tmp_path / "Makefile").write_text(makefile)
    ours = project.instructions(project.make("run"))
    (tmp_path / "lib0.c").write_text(plain)
    (tmp_path / "lib1.c").write_text("typedef int nothing;\n")
    printed = project.make("run")
    assert printed.endswith("PASS\n"), "the plain loops compute something else"
    assert ours <= project.instructions(printed)
