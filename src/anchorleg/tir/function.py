"""``PrimFunc``: a function of the loop language."""
from __future__ import annotations

from typing import Any as _Any, Mapping, Sequence

from ..ir.attrs import DictAttrs
from ..ir.expr import BaseFunc
from ..ir.module import NodeList
from ..ir.node import ATTRS, BINDS, CHILD, Node
from ..ir.repr_hooks import script_text
from ..ir.type import TupleType
from .buffer import Buffer
from .expr import Var
from .stmt import Stmt


class PrimFunc(BaseFunc):
    """Parameters (scalars, or handles that ``buffer_map`` binds to buffers), a body, a result type, attributes.

    ``buffer_map`` maps a handle parameter to the Buffer it carries.  Attribute ``global_symbol`` is the linker's name.
    """

    __slots__ = ("params", "buffers", "ret_type", "body")
    FIELDS = {"params": BINDS, "buffers": BINDS, "ret_type": CHILD, "body": CHILD, "attrs": ATTRS}
    __hash__ = BaseFunc.__hash__

    def __init__(self, params: Sequence[Var | Buffer], body: Stmt, ret_type: _Any = None,
                 buffer_map: Mapping[Var, Buffer] | None = None, attrs: _Any = None, span: _Any = None) -> None:
        table = {id(v): b for v, b in (buffer_map or {}).items()}
        handles: list[Var] = []
        for p in params:
            if isinstance(p, Buffer):
                handle = Var(p.name, "handle")
                table[id(handle)] = p
                handles.append(handle)
            else:
                handles.append(p)
        self.params: tuple[Var, ...] = NodeList(handles)
        self.buffers: tuple[Buffer | None, ...] = tuple(table.get(id(v)) for v in handles)
        self.body, self.ret_type = body, ret_type if ret_type is not None else TupleType(())
        self.attrs, self.span, self._checked_type = attrs if attrs is not None else DictAttrs(), span, None

    @property
    def __name__(self) -> str:
        """The linker's name, or "main"."""
        return str(self.get_attr("global_symbol", "main"))

    @property
    def buffer_map(self) -> dict[Var, Buffer]:
        """Handle parameter → buffer, in parameter order."""
        return {v: b for v, b in zip(self.params, self.buffers) if b is not None}

    def with_body(self, new_body: Stmt, span: _Any = None) -> PrimFunc:
        """The same function with another body."""
        return self.replace(body=new_body)

    def children(self) -> list[Node]:
        return [*self.params, *(b for b in self.buffers if b is not None), self.body]

    def script(self, *args: _Any, **kwargs: _Any) -> str:
        """The function as script that ``script.from_source`` reads back as the same function."""
        return script_text(self)

    def show(self, *args: _Any, **kwargs: _Any) -> None:
        """Prints the function's script."""
        print(self.script())
