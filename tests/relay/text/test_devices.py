"""Devices of variables and functions in text."""
from __future__ import annotations

import pytest

from anchorleg import relay
from anchorleg.ir.structural import first_difference, structural_equal, structural_hash
from anchorleg.runtime import cpu
from anchorleg.support.errors import ParseError
from anchorleg.target import Target, VirtualDevice

DEVICES = {"VirtualDevice": [VirtualDevice(cpu(0), Target("llvm")), VirtualDevice(cpu(1), Target("llvm")), VirtualDevice()]}
TEXT = """#[version = "0.0.5"]
def @main(%x {virtual_device=meta[VirtualDevice][0]}: Tensor[(2), float32], %y {virtual_device=meta[VirtualDevice][1]}: Tensor[(2), float32],
          %z {virtual_device=meta[VirtualDevice][2]}: Tensor[(2), float32], Primitive=1, virtual_device=meta[VirtualDevice][1]) {
  let %a {virtual_device=meta[VirtualDevice][1]}: Tensor[(2), float32] = add(%x, %y);
  add(%a, %z)
}"""


def parsed(text: str = TEXT) -> relay.Function:
    return relay.parse(text, "text", None, DEVICES)["main"]


def test_devices_are_read_and_written() -> None:
    main = parsed()
    assert [p.virtual_device_ for p in main.params] == [*DEVICES["VirtualDevice"][:2], None]
    assert main.virtual_device_ == main.body.var.virtual_device_ == DEVICES["VirtualDevice"][1] and main.get_attr("Primitive") == 1
    again = relay.parse(relay.parse(TEXT, "text", None, DEVICES).astext())["main"]
    assert structural_equal(main, again) and again.virtual_device_ == main.virtual_device_ and again.params[0].virtual_device_ == main.params[0].virtual_device_
    assert "%y {virtual_device=VirtualDevice(device_type=1, virtual_device_id=1, target=llvm -keys=cpu)}: Tensor" in main.astext(show_meta_data=False)


def test_devices_of_variables_take_part_in_equality_and_those_of_functions_do_not() -> None:
    main, other = parsed(), parsed(TEXT.replace("%y {virtual_device=meta[VirtualDevice][1]}", "%y {virtual_device=meta[VirtualDevice][0]}"))
    assert "virtual_device_" in (first_difference(main, other) or "") and structural_hash(main) != structural_hash(other)
    assert structural_equal(main, parsed(TEXT.replace("Primitive=1, virtual_device=meta[VirtualDevice][1]", "Primitive=1")))


@pytest.mark.parametrize("bad,message", [("%x {device=1}", "expected virtual_device="), ("%x {virtual_device=7}", "is expected to be a VirtualDevice"),
                                         ("%x {virtual_device=meta[VirtualDevice][9]}", "no entry 9")])
def test_mistakes(bad: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parsed(f'#[version = "0.0.5"]\ndef @main({bad}) {{ %x }}')
