"""C source files: includes, helpers, prototypes and functions in the order that C needs; constants as arrays."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

import numpy as np

from .helpers import HELPERS, closure
from .kernel import CKernel
from .types import float_text, int_text, needs_math, storage_type

_PER_LINE = {1: 24, 2: 16, 4: 8, 8: 4}


def constant_array(name: str, array: Any, static: bool = True, section: str = "") -> str:
    """A constant tensor as the definition of an array."""
    data = np.ascontiguousarray(array).reshape(-1)
    dtype = str(data.dtype)
    if dtype in ("float16", "bfloat16"):
        data, dtype = data.view(np.uint16), "uint16"
    if data.size == 0:
        data = np.zeros(1, data.dtype)
    texts = [float_text(float(v), dtype) for v in data] if dtype.startswith("float") else [int_text(int(v), dtype) for v in data]
    width = _PER_LINE[data.dtype.itemsize]
    rows = ",\n".join("    " + ", ".join(texts[i: i + width]) for i in range(0, len(texts), width))
    return f"{'static ' if static else ''}const {storage_type(dtype)} {name}[{data.size}]{section} = {{\n{rows}\n}};\n"


class CSource:
    """A source file made of kernels and further functions.

    ``title`` is its first comment.  ``kernels`` are declared before they are defined; ``functions`` is text put last.
    """

    def __init__(self, title: str, kernels: Iterable[CKernel] = (), functions: Sequence[str] = (), includes: Sequence[str] = (),
                 constants: Sequence[tuple[str, Any]] = (), declarations: Sequence[str] = (), uses_math: bool = False) -> None:
        self.title, self.kernels, self.functions = title, list(kernels), list(functions)
        self.includes, self.constants, self.declarations, self.uses_math = list(includes), list(constants), list(declarations), uses_math

    @property
    def text(self) -> str:
        """The file."""
        helpers = closure({h for k in self.kernels for h in k.helpers})
        arrays = [constant_array(name, data) for name, data in [*self.constants, *(c for k in self.kernels for c in k.constants)]]
        math = self.uses_math or any(k.uses_math for k in self.kernels) or any(HELPERS[h].math for h in helpers) or any(map(needs_math, [*arrays, *self.declarations]))
        helper_text = [HELPERS[h].text for h in helpers]
        includes = ["<stdint.h>", "<stddef.h>", *(["<string.h>"] if self._copies(helper_text) else []), *(["<math.h>"] if math else []), *self.includes]
        externs = dict.fromkeys(e for k in self.kernels for e in k.externs)
        parts = [f"/* {self.title} */\n", "\n".join(f"#include {i}" for i in includes) + "\n", *helper_text]
        declared = [*externs, *self.declarations, *(k.prototype + ";" for k in self.kernels)]
        if declared:
            parts.append("\n".join(declared) + "\n")
        return "\n".join([*parts, *arrays, *(k.definition for k in self.kernels), *self.functions])

    def _copies(self, helpers: Sequence[str]) -> bool:
        return any("memcpy" in text or "memset" in text for text in [*helpers, *self.functions, *(k.body for k in self.kernels)])
