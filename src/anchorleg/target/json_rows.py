"""Virtual devices and targets as rows of a program's JSON text, in upstream's form."""
from __future__ import annotations

from typing import Any, Mapping

from ..ir.expr import IntImm
from ..ir.serialize import RowForm, PlainRow
from ..support.errors import ParseError
from .kinds import find_kind
from .target import Target
from .virtual_device import VirtualDevice


def _value_row(value: Any) -> Any:
    """An option's value as something that has a row."""
    if isinstance(value, (list, tuple)):
        return [_value_row(v) for v in value]
    return PlainRow(value) if isinstance(value, (str, int)) else value


def _value_of(value: Any) -> Any:
    """An option's value from what its row holds."""
    if isinstance(value, IntImm):
        return bool(value.value) if value.dtype == "bool" else value.value
    return [_value_of(v) for v in value] if isinstance(value, tuple) else value


def _write_device(device: Any) -> dict[str, Any]:
    return {"device_type_int": str(device.device_type_int), "memory_scope": PlainRow(device.memory_scope), "target": device.target,
            "virtual_device_id": str(device.virtual_device_id)}


def _read_device(attrs: Mapping[str, Any]) -> VirtualDevice:
    if attrs["target"] is not None and not isinstance(attrs["target"], Target):
        raise ParseError("damaged program text: the target of a virtual device is not a target")
    return VirtualDevice.of(int(attrs["device_type_int"]), int(attrs["virtual_device_id"]), attrs["target"], attrs["memory_scope"])


def _write_target(target: Target) -> dict[str, Any]:
    return {"attrs": {k: _value_row(v) for k, v in target.attrs.items()}, "features": {}, "host": target.host,
            "keys": _value_row(list(target.keys)), "kind": target.kind, "tag": PlainRow(target.tag)}


def _read_target(attrs: Mapping[str, Any]) -> Target:
    options = {k: _value_of(v) for k, v in (attrs["attrs"] or {}).items()}
    made = Target({"kind": attrs["kind"].name, "keys": list(attrs["keys"] or ()), "tag": attrs["tag"] or "", **options})
    return made if attrs["host"] is None else made.with_host(attrs["host"])


def _write_kind(kind: Any) -> dict[str, Any]:
    return {"default_device_type": str(kind.device_type), "default_keys": _value_row(list(kind.default_keys)), "name": PlainRow(kind.name)}


FORMS = {
    "VirtualDevice": RowForm(("memory_scope", "target"), _write_device, _read_device),
    "Target": RowForm(("attrs", "features", "host", "keys", "kind", "tag"), _write_target, _read_target),
    "TargetKind": RowForm(("default_keys", "name"), _write_kind, lambda attrs: find_kind(attrs["name"])),
}

__all__ = ["FORMS"]
