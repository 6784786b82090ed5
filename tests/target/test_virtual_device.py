"""Virtual devices: what they leave open, joining and defaulting them; the devices that follow from a build's targets."""
from __future__ import annotations

import pytest

from anchorleg.ir.serialize import load_json, save_json
from anchorleg.ir.transform import PassContext
from anchorleg.runtime import cpu, cuda
from anchorleg.support.errors import ArgumentError, TargetError
from anchorleg.target import Target, VirtualDevice, make_compilation_config
from anchorleg.target.virtual_device import default_to, join

LLVM, CUDA = Target("llvm"), Target("cuda -arch=sm_80")


def test_parts() -> None:
    open_ = VirtualDevice()
    assert open_.is_fully_unconstrained and not open_.is_fully_constrained and repr(open_) == "VirtualDevice(?)"
    full = VirtualDevice(cpu(1), LLVM, "global")
    assert full.is_fully_constrained and full.to_device() == cpu(1) and full.device_type == 1
    assert repr(full) == "VirtualDevice(device_type=1, virtual_device_id=1, target=llvm -keys=cpu, memory_scope='global')"
    assert VirtualDevice("cuda") == VirtualDevice(cuda(0)) != VirtualDevice(cuda(1)) and VirtualDevice(None, CUDA).device_type_int == 2
    scope_only = VirtualDevice(memory_scope="global.texture")
    assert not scope_only.is_fully_unconstrained
    with pytest.raises(ArgumentError, match="names no particular device"):
        scope_only.to_device()
    with pytest.raises(TargetError, match="for devices of type 1"):
        VirtualDevice(cuda(0), LLVM)
    with pytest.raises(ArgumentError, match="a device or its name"):
        VirtualDevice(3)


@pytest.mark.parametrize("left,right,joined", [
    (VirtualDevice(), VirtualDevice(cpu(1)), VirtualDevice(cpu(1))),
    (VirtualDevice.of(1, target=LLVM), VirtualDevice.of(-1, 3, None, "global"), VirtualDevice(cpu(3), LLVM, "global")),
    (VirtualDevice(cpu(0), LLVM), VirtualDevice(cpu(0)), VirtualDevice(cpu(0), LLVM)),
    (VirtualDevice(cpu(0)), VirtualDevice(cpu(1)), None),
    (VirtualDevice(cpu(0)), VirtualDevice(cuda(0)), None),
    (VirtualDevice(cpu(0), LLVM), VirtualDevice(cpu(0), Target("c")), None),
    (VirtualDevice(memory_scope="a"), VirtualDevice(memory_scope="b"), None),
])
def test_joining(left: VirtualDevice, right: VirtualDevice, joined: VirtualDevice | None) -> None:
    assert join(left, right) == joined == join(right, left)


def test_defaulting_fills_what_is_open() -> None:
    assert default_to(VirtualDevice(memory_scope="s"), VirtualDevice(cpu(2), LLVM, "t")) == VirtualDevice(cpu(2), LLVM, "s")
    assert default_to(VirtualDevice(cuda(1)), VirtualDevice(cpu(2), LLVM)) == VirtualDevice(cuda(1))  # a target of another kind does not fit


def test_devices_of_a_build() -> None:
    config = make_compilation_config(PassContext(), [LLVM, CUDA])
    assert config.host_target == LLVM and config.host_virtual_device == VirtualDevice(cpu(0), LLVM)
    assert all(t.host == LLVM for t in config.primitive_targets) and config.optional_homogeneous_target is None
    assert config.default_primitive_virtual_device.device_type == 1  # the host's, as long as nobody says otherwise
    there = config.canonical(VirtualDevice(cuda(1)))
    assert there.target is config.primitive_targets[1] and config.canonical(VirtualDevice(cuda(1))) is there
    only = make_compilation_config(PassContext(), CUDA, "c")
    assert only.host_target.kind.name == "c" and only.default_primitive_virtual_device.device_type == 2
    moved = make_compilation_config(PassContext(config={"relay.fallback_device_type": 2}), [LLVM, CUDA])
    assert moved.default_primitive_virtual_device.device_type == 2


def test_targets_that_do_not_go_together() -> None:
    with pytest.raises(TargetError, match="kind 'llvm'"):
        make_compilation_config(PassContext(), ["llvm", "llvm -mcpu=x86-64"])
    with pytest.raises(TargetError, match="devices of type 1"):
        make_compilation_config(PassContext(), ["llvm", "c"])
    with pytest.raises(TargetError, match="no target was given for devices of type 2 \\(cuda\\)"):
        make_compilation_config(PassContext(), "llvm").canonical(VirtualDevice(cuda(0)))


def test_json() -> None:
    rows = [VirtualDevice(cuda(1), CUDA.with_host("llvm -mattr=+avx2,+fma"), "global"), VirtualDevice(), VirtualDevice(cpu(0))]
    back = load_json(save_json(rows))
    assert list(back) == rows and back[0].target == rows[0].target
