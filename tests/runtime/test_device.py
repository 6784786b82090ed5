"""Devices by name and number."""

from __future__ import annotations

import pickle

import pytest

from anchorleg.runtime import Device, cpu, cuda, device, opencl
from anchorleg.support.errors import ArgumentError


def test_names():
    assert device("cpu") == device("cpu", 0) == device("llvm -mcpu=core-avx2") == cpu() == Device(1, 0)
    assert device("cuda:1") == cuda(1) == device("cuda", 1) != cuda(0)
    assert device("aocl").device_type == device("aocl_sw_emu").device_type == 32 and device("aocl").type_name == "aocl"
    assert device(opencl(2)) == opencl(2) and device(4, 2) == opencl(2)
    assert repr(cpu(0)) == "cpu(0)" and len({cpu(0), Device(1, 0), cuda(0)}) == 2


@pytest.mark.parametrize("name", ["", "tpu", "cpu:x"])
def test_unknown(name):
    with pytest.raises(ArgumentError, match="expected one of .*cpu"):
        device(name)


def test_exist():
    assert cpu(0).exist and cpu(1).exist and not Device(1, -1).exist and not cuda(63).exist


def test_pickle():
    assert pickle.loads(pickle.dumps(cuda(3))) == cuda(3)


def test_constructors_at_the_top():
    import anchorleg

    made = {name: getattr(anchorleg, name)(1) for name in ("cpu", "cuda", "opencl", "vulkan", "metal", "rocm", "ext_dev", "webgpu", "hexagon")}
    assert {name: d.type_name for name, d in made.items()} == {name: name for name in made} and all(d.device_id == 1 for d in made.values())
