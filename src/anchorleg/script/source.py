"""The source of a decorated function or class: its syntax tree, its place in a file, the names it sees."""
from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from types import FrameType, FunctionType
from typing import Any, Mapping, NamedTuple

from ..ir.span import SourceName, Span
from .errors import ScriptError


class Source(NamedTuple):
    """One text to parse; ``first_line`` and ``indent`` say where it begins in ``filename``."""

    text: str
    filename: str
    first_line: int
    indent: int
    tree: ast.Module

    def span(self, node: ast.AST) -> Span:
        """Where a node of the tree lies in the file."""
        line, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or getattr(node, "lineno", 1)
        start = getattr(node, "col_offset", 0) + self.indent + 1
        stop = (getattr(node, "end_col_offset", None) or 0) + self.indent + 1
        shift = self.first_line - 1
        return Span(SourceName(self.filename), line + shift, end + shift, start, stop)

    def error(self, node: ast.AST | None, message: str) -> ScriptError:
        """An error at a node."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        lines = self.text.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return ScriptError(message, self.filename, line + self.first_line - 1, column, text)


def source_of_text(text: str, filename: str = "<str>", first_line: int = 1) -> Source:
    """A text as a source; ScriptError when it is no Python."""
    dedented = textwrap.dedent(text)
    indent = len(text) - len(text.lstrip()) if dedented is not text and text[:1] == " " else 0
    try:
        tree = ast.parse(dedented)
    except (SyntaxError, RecursionError, MemoryError) as error:
        line = (getattr(error, "lineno", None) or 1) + first_line - 1
        what = getattr(error, "msg", None) or "nested too deeply for Python's parser"
        raise ScriptError(f"the script is no Python: {what}", filename, line) from error
    return Source(dedented, filename, first_line, indent, tree)


def source_of_object(thing: Any) -> Source:
    """The source of a function or class; ScriptError when Python does not know it."""
    try:
        if inspect.isclass(thing):
            return _source_of_class(thing)
        lines, first = inspect.getsourcelines(thing)
        return source_of_text("".join(lines), inspect.getsourcefile(thing) or "<unknown>", max(1, first))
    except (OSError, TypeError) as error:
        raise ScriptError(f"the source of {getattr(thing, '__qualname__', thing)!r} is not known; scripts are parsed from source, so "
                          "they have to be in a file (or use tvm.script.from_source with the text)") from error


def _source_of_class(cls: type) -> Source:
    """The class statement that holds the methods of ``cls`` (a file may define a name several times)."""
    lines_of_methods = [f.__code__.co_firstlineno for f in vars(cls).values() if isinstance(f, FunctionType)]
    if not lines_of_methods:
        lines, first = inspect.getsourcelines(cls)
        return source_of_text("".join(lines), inspect.getsourcefile(cls) or "<unknown>", max(1, first))
    filename = next(f for f in vars(cls).values() if isinstance(f, FunctionType)).__code__.co_filename
    lines = linecache.getlines(filename)
    found = [n for n in ast.walk(ast.parse("".join(lines))) if isinstance(n, ast.ClassDef) and n.name == cls.__name__
             and n.lineno <= min(lines_of_methods) and max(lines_of_methods) <= (n.end_lineno or 0)]
    if not found:
        raise OSError(f"no class {cls.__name__} around line {min(lines_of_methods)} of {filename}")
    node = max(found, key=lambda n: n.lineno)
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return source_of_text("".join(lines[first - 1:node.end_lineno]), filename, first)


# ---------------------------------------------------------------- names


def captured_names(func: FunctionType) -> dict[str, Any]:
    """The names a function sees: globals, then the variables of enclosing functions it uses."""
    found = dict(func.__globals__)
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            pass  # not assigned yet: a function that names itself
    return found


def captured_by_class(cls: type) -> dict[str, Any]:
    """The names the methods of a class see."""
    found: dict[str, Any] = {}
    for member in vars(cls).values():
        if isinstance(member, FunctionType):
            found.update(captured_names(member))
    return found


def annotations_of(thing: Any) -> dict[str, Mapping[str, Any]]:
    """Function name → parameter → annotation, as Python evaluated them (texts are left out)."""
    members = vars(thing).values() if inspect.isclass(thing) else [thing]
    return {f.__name__: {k: v for k, v in f.__annotations__.items() if not isinstance(v, str)} for f in members if isinstance(f, FunctionType)}


def in_module_class(depth: int) -> bool:
    """Whether the decorator's caller, ``depth`` frames up, is the body of a class that ``ir_module`` decorates."""
    frame: FrameType | None = sys._getframe(depth + 1)
    if frame is None or "__qualname__" not in frame.f_locals or "__module__" not in frame.f_locals:
        return False
    first, filename = frame.f_code.co_firstlineno, frame.f_code.co_filename
    for number in range(first, frame.f_lineno + 1):
        line = linecache.getline(filename, number).strip()
        if line.startswith("class "):
            return False
        if line.startswith("@") and "ir_module" in line:
            return True
    return False
