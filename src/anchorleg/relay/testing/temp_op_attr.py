"""An operator attribute that is set for a scope only."""
from __future__ import annotations

from typing import Any

from ...ir.op import Op


class TempOpAttr:
    """Sets ``attr_key`` of an operator on entry and puts back what was there on exit.

    ::

        with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", my_rule):
            mod = relay.transform.AlterOpLayout()(mod)
    """

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        self.op, self.attr_key, self.attr_value = Op.get(op_name), attr_key, attr_value
        self.had = self.op.has_attr(attr_key)
        self.older = self.op.get_attr(attr_key)

    def __enter__(self) -> TempOpAttr:
        self.op.reset_attr(self.attr_key)
        self.op.set_attr(self.attr_key, self.attr_value)
        return self

    def __exit__(self, *exc: Any) -> None:
        self.op.reset_attr(self.attr_key)
        if self.had:
            self.op.set_attr(self.attr_key, self.older)
