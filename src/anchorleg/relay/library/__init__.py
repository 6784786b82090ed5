"""The standard library: data types and functions written in the graph language itself."""
from __future__ import annotations

import re

from ...ir.module import IRModule
from ...support.errors import ArgumentError
from ..text.parser import parse_untyped
from . import core, gradient, nat, prelude

LIBRARIES: dict[str, str] = {"core.rly": core.TEXT, "gradient.rly": gradient.TEXT, "nat.rly": nat.TEXT, "prelude.rly": prelude.TEXT}
_DEFINED = re.compile(r"^(?:extern )?(?:type|def) @?(\w+)", re.M)


def import_from_std(mod: IRModule, name: str) -> None:
    """Adds a library to a module, in place; nothing happens when the module has it already."""
    if name not in LIBRARIES:
        raise ArgumentError(f"no standard library is named {name!r}; there are: {', '.join(sorted(LIBRARIES))}")
    names = _DEFINED.findall(LIBRARIES[name])
    known = {g.name_hint for g in (*mod.functions, *mod.type_definitions)}
    if not known.issuperset(names):
        add_text(mod, LIBRARIES[name], f"library/{name}")


def add_text(mod: IRModule, text: str, source: str) -> None:
    """Adds the definitions of a text to a module, in place."""
    mod.update(parse_untyped('#[version = "0.0.5"]\n' + text, source, mod))
