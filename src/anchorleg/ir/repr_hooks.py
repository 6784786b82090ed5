"""Which printer shows a node: higher rooms register theirs here, so that ``repr`` needs no import upwards."""
from __future__ import annotations

import importlib
from typing import Any, Callable

_PRINTERS: list[tuple[type, Callable[[Any], str]]] = []


def register_printer(node_class: type, printer: Callable[[Any], str]) -> None:
    """Makes ``printer`` render nodes of ``node_class`` and its subclasses; the newest registration wins."""
    _PRINTERS.insert(0, (node_class, printer))


def render(node: Any) -> str:
    """The text of a node: by its registered printer, or its class name and address."""
    for node_class, printer in _PRINTERS:
        if isinstance(node, node_class):
            return printer(node)
    return f"<{type(node).__name__} at {id(node):#x}>"


_MODULE_PRINTERS: list[Callable[..., "str | None"]] = []


def register_module_printer(printer: Callable[..., "str | None"]) -> None:
    """Adds a printer of whole modules: ``printer(mod, show_meta_data, annotate)`` gives the text, or None for a module of another
    language; the newest is asked first."""
    _MODULE_PRINTERS.insert(0, printer)


def module_text(mod: Any, show_meta_data: bool = True, annotate: Any = None) -> str:
    """The text of a module."""
    for printer in _MODULE_PRINTERS:
        text = printer(mod, show_meta_data, annotate)
        if text is not None:
            return text
    return "IRModule(" + ", ".join(g.name_hint for g in mod.functions) + ")"


_SCRIPT = ("script.printer", "script")  # by name: a room above, loaded when first asked for


def script_text(node: Any, *args: Any) -> str:
    """A loop program as script: text that reads back as the same program."""
    module, function = _SCRIPT
    return getattr(importlib.import_module(f"{__package__.rpartition('.')[0]}.{module}"), function)(node, *args)
