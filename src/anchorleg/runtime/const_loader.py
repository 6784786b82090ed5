"""`ConstLoaderModule`: keeps the constants of imported modules and hands them over before their first use.

For a function ``f`` that needs constants, an imported module has ``__init_f``.  It is called once, when ``f`` is first looked up: with
one tensor for each constant when it is native code, else with the list of them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from ..support.errors import ArgumentError, BuildError
from .module import Module
from .ndarray import NDArray, aligned, array
from .packed_func import PackedFunc
from .registry import register_func


class ConstLoaderModule(Module):
    """Constants, and which function needs which.

    Parameters
    ----------
    constants : name → tensor.
    by_symbol : function name → names of its constants, in order.

    The modules that need them are imported: ``import_module``.
    """

    type_key = "const_loader"

    def __init__(self, constants: Mapping[str, object], by_symbol: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.constants = {k: aligned(v if isinstance(v, NDArray) else array(v)) for k, v in constants.items()}  # type: ignore[arg-type]
        self.by_symbol = {k: [str(n) for n in v] for k, v in by_symbol.items()}
        self._ready: set[str] = set()
        self._lock = threading.RLock()
        for symbol, names in self.by_symbol.items():
            missing = [n for n in names if n not in self.constants]
            if missing:
                raise ArgumentError(f"the external function {symbol!r} needs the constants {', '.join(missing)}, which nobody gave; there are: "
                                    f"{', '.join(self.constants) or 'none'}")

    @property
    def is_binary_serializable(self) -> bool:
        return True

    def _own_function(self, name: str) -> PackedFunc | None:
        if name == "get_const_var_ndarray":
            return PackedFunc(lambda: dict(self.constants), name, keep=self)
        if name in self.by_symbol:
            self._initialise(name)
        return next((f for m in self._imports if (f := m._find(name, True)) is not None), None)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` would find ``name``; initialises nothing."""
        return name == "get_const_var_ndarray" or any(m.implements_function(name, True) for m in self._imports)

    def _initialise(self, symbol: str) -> None:
        with self._lock:
            if symbol in self._ready:
                return
            init = next((f for m in self._imports if (f := m._find(f"__init_{symbol}", True)) is not None), None)
            if init is not None:
                tensors = [self.constants[n] for n in self.by_symbol[symbol]]
                status = init(*tensors) if init.handle else init(tensors)
                if status not in (None, 0):
                    raise BuildError(f"__init_{symbol} refused the constants of the external function {symbol!r}: it returned {status!r}, 0 is expected")
            self._ready.add(symbol)


@register_func("runtime.ConstLoaderModuleCreate", override=True)
def create_const_loader(constants: Mapping[str, object], by_symbol: Mapping[str, Sequence[str]]) -> ConstLoaderModule:
    """A module that hands constants over."""
    return ConstLoaderModule(constants, by_symbol)


__all__ = ["ConstLoaderModule", "create_const_loader"]
