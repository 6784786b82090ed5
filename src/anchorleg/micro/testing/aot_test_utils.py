"""Runners and parameters of tests, at upstream's address."""
from __future__ import annotations

import itertools
import shutil
from typing import Any

import pytest

from ...testing.aot import AOTTestRunner

AOT_DEFAULT_RUNNER = AOTTestRunner()
AOT_CORSTONE300_RUNNER = AOTTestRunner(makefile="mps2-an500")  # an emulated Cortex-M7 in place of the vendor's simulator
AOT_USMP_CORSTONE300_RUNNER = AOTTestRunner(makefile="mps2-an500", pass_config={"tir.usmp.enable": True})


def parametrize_aot_options(test: Any) -> Any:
    """The valid combinations of interface, calling convention and runner as parameters of a test."""
    missing = shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None
    needs_tools = pytest.mark.skipif(missing, reason="needs arm-none-eabi-gcc and qemu-system-arm")
    rows: list[Any] = []
    for interface, unpacked, runner in itertools.product(["packed", "c"], [True, False], [AOT_DEFAULT_RUNNER, AOT_CORSTONE300_RUNNER]):
        if interface == "c" and not unpacked or runner is AOT_CORSTONE300_RUNNER and interface == "packed":
            continue
        rows.append(pytest.param(interface, unpacked, runner, marks=[needs_tools] if runner is AOT_CORSTONE300_RUNNER else []))
    return pytest.mark.parametrize(["interface_api", "use_unpacked_api", "test_runner"], rows)(test)
