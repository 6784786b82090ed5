"""Functions that upstream's users find by global name."""
from __future__ import annotations

from typing import Any

from ...runtime.registry import get_global_func, register_func


def _lower_te(module_name: str, config: Any) -> Any:
    from ...relay.backend.lower_te import LowerTE

    return LowerTE(module_name, config)


def _pass(name: str) -> Any:
    def make(*args: Any) -> Any:
        from ...relay import transform

        return getattr(transform, name)(*args)

    return make


def _lower_call(*args: Any) -> Any:
    from ...relay.backend.te_compiler import lower_call

    return lower_call(*args)


def _lower_to_primfunc(*args: Any) -> Any:
    from ...relay.backend.te_compiler import lower_to_primfunc

    return lower_to_primfunc(*args)


def _recover_devices(*args: Any) -> Any:
    from ...relay.transform.device_scopes import recover_virtual_device_map

    return recover_virtual_device_map(*args)


def _build(*args: Any) -> Any:
    from ...relay.build_module import build

    return build(*args)


FUNCTIONS = {
    "relay.tec.LowerTE": _lower_te,
    "relay.backend.lower_call": _lower_call,
    "relay.backend.LowerToPrimFunc": _lower_to_primfunc,
    "relay.backend.build": _build,
    "relay.transform.RecoverVirtualDeviceMap": _recover_devices,
    "relay._transform.RemoveStandaloneReshapes": _pass("RemoveStandaloneReshapes"),
}

for _name, _function in FUNCTIONS.items():
    if get_global_func(_name, allow_missing=True) is None:
        register_func(_name, _function)
