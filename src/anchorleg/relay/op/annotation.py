"""Marks in a program that change no value: device placement, fusion barriers, regions of external compilers, debugging."""
from __future__ import annotations

from typing import Any

from ...ir.attrs import BOOL, RAW, STR, Attrs, Field
from ...ir.expr import RelayExpr
from ...ir.op import Op, OpPattern
from ...support.errors import ArgumentError
from ..expr import Call
from .attrs_common import CastAttrs
from .registry import declare
from .type_relations import same_as_input_rel


class OnDeviceAttrs(Attrs, name="relay.attrs.OnDeviceAttrs"):
    """Attributes of ``on_device``."""

    virtual_device = Field(RAW, None, "The device on which the input is to be computed and stored (None: any).")
    constrain_result = Field(BOOL, False, "Whether the result is on that device too.")
    constrain_body = Field(BOOL, True, "Whether the input is on that device.")


class DeviceCopyAttrs(Attrs, name="relay.attrs.DeviceCopyAttrs"):
    """Attributes of ``device_copy``."""

    src_virtual_device = Field(RAW, None, "The device that is copied from.")
    dst_virtual_device = Field(RAW, None, "The device that is copied to.")


class CompilerAttrs(Attrs, name="relay.attrs.CompilerAttrs"):
    """Attributes of ``annotation.compiler_begin`` and ``annotation.compiler_end``."""

    compiler = Field(STR, doc="The external compiler's name.")


class CastHintAttrs(CastAttrs, name="relay.attrs.CastHintAttrs"):
    """Attributes of ``annotation.cast_hint``."""


class DebugAttrs(Attrs, name="relay.attrs.DebugAttrs"):
    """Attributes of ``debug``."""

    debug_func = Field(RAW, None, "A function called with the value and the interpreter's state.")


def _same(attrs: Any, args: list[Any], out_type: Any) -> Any:
    return args[0]


# name, attribute class, further operator attributes, meaning
_TABLE: list[tuple[str, type[Attrs] | None, dict[str, Any], str]] = [
    ("on_device", OnDeviceAttrs, {"TNonComputational": True}, "The input, to be computed and stored on a device."),
    ("device_copy", DeviceCopyAttrs, {}, "The input, copied from one device to another."),
    ("annotation.stop_fusion", None, {}, "The input; operators before and after are not fused across this."),
    ("annotation.checkpoint", None, {}, "The input, kept rather than computed again in gradients."),
    ("annotation.cast_hint", CastHintAttrs, {}, "The input; a hint about its data type."),
    ("annotation.compiler_begin", CompilerAttrs, {}, "An input of a region that an external compiler takes."),
    ("annotation.compiler_end", CompilerAttrs, {}, "A result of a region that an external compiler takes."),
    ("annotation.bitpack_start", None, {}, "The input; the start of a region whose tensors are bit-packed."),
    ("annotation.bitpack_end", None, {}, "The input; the end of a region whose tensors are bit-packed."),
    ("debug", DebugAttrs, {}, "The input, shown to a function when interpreted."),
]

for _name, _attrs, _more, _doc in _TABLE:
    declare(_name, attrs=_attrs, relation=same_as_input_rel, pattern=OpPattern.OPAQUE, numpy=_same, doc=_doc, level=10, **_more)


def _virtual(device: Any) -> Any:
    from ...target.virtual_device import VirtualDevice

    return device if isinstance(device, VirtualDevice) else VirtualDevice(device)


def on_device(body: RelayExpr, device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Call:
    """``body``, to be computed on ``device`` (a name, Device or VirtualDevice) and, with ``constrain_result``, stored there."""
    where = _virtual(device if constrain_result or constrain_body else None)
    attrs = OnDeviceAttrs(virtual_device=where, constrain_result=constrain_result, constrain_body=constrain_body)
    return Call(Op.get("on_device"), [body], attrs)


def device_copy(data: RelayExpr, src_device: Any, dst_device: Any) -> Call:
    """``data`` copied from one device to another (names, Devices or VirtualDevices)."""
    attrs = DeviceCopyAttrs(src_virtual_device=_virtual(src_device), dst_virtual_device=_virtual(dst_device))
    return Call(Op.get("device_copy"), [data], attrs)


def stop_fusion(data: RelayExpr) -> Call:
    """``data``; what comes before is not fused with what comes after."""
    return Call(Op.get("annotation.stop_fusion"), [data])


def checkpoint(data: RelayExpr) -> Call:
    """``data``, kept rather than computed again in gradients."""
    return Call(Op.get("annotation.checkpoint"), [data])


def _compiler(name: str, data: RelayExpr, compiler: str) -> Call:
    if not compiler:
        raise ArgumentError(f"{name}: the name of a compiler is expected, got {compiler!r}")
    return Call(Op.get(f"annotation.{name}"), [data], CompilerAttrs(compiler=compiler))


def compiler_begin(data: RelayExpr, compiler: str) -> Call:
    """``data`` as an input of a region for ``compiler``."""
    return _compiler("compiler_begin", data, compiler)


def compiler_end(data: RelayExpr, compiler: str) -> Call:
    """``data`` as a result of a region for ``compiler``."""
    return _compiler("compiler_end", data, compiler)


def debug(expr: RelayExpr, debug_func: Any = None) -> Call:
    """``expr``, shown to ``debug_func`` when interpreted."""
    return Call(Op.get("debug"), [expr], DebugAttrs(debug_func=debug_func))
