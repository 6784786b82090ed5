"""The standard library: data types and functions written in the graph language itself."""
from __future__ import annotations

import functools
import re

from ...ir.module import IRModule
from ...support.errors import ArgumentError
from ..text.parser import parse_untyped
from . import core, gradient, nat, prelude

LIBRARIES: dict[str, str] = {"core.rly": core.TEXT, "gradient.rly": gradient.TEXT, "nat.rly": nat.TEXT, "prelude.rly": prelude.TEXT}
_DEFINED = re.compile(r"^(?:extern )?(?:type|def) @?(\w+)", re.M)


_STANDALONE = ("core.rly", "gradient.rly", "prelude.rly")  # these refer to nothing outside


def import_from_std(mod: IRModule, name: str) -> None:
    """Adds a library to a module, typed, in place; nothing happens when the module has it already."""
    if name not in LIBRARIES:
        raise ArgumentError(f"no standard library is named {name!r}; there are: {', '.join(sorted(LIBRARIES))}")
    names = set(_DEFINED.findall(LIBRARIES[name]))
    known = {g.name_hint for g in (*mod.functions, *mod.type_definitions)}
    if known.issuperset(names):
        return
    if name in _STANDALONE and not known & names:
        mod.update(_library(name))
    else:
        add_text(mod, LIBRARIES[name], f"library/{name}")


@functools.lru_cache(maxsize=None)
def _library(name: str) -> IRModule:
    """A library by itself, read and typed once: modules share its definitions, which never change."""
    mod = IRModule()
    add_text(mod, LIBRARIES[name], f"library/{name}")
    return mod


def add_text(mod: IRModule, text: str, source: str) -> None:
    """Adds the definitions of a text to a module, typed, in place."""
    from ..transform.infer_type import infer_functions

    before = set(mod.functions)
    mod.update(parse_untyped('#[version = "0.0.5"]\n' + text, source, mod))
    infer_functions(mod, [g.name_hint for g in mod.functions if g not in before])
