"""Scopes that switch the importers' source spans on or off."""
from __future__ import annotations

from ..ir.transform import PassContext


class _SpanFilling(PassContext):
    def __init__(self, on: bool) -> None:
        super().__init__(config={"relay.frontend.fill_span": on})


class enable_span_filling(_SpanFilling):
    """Importers note where expressions come from."""

    def __init__(self) -> None:
        super().__init__(True)


class disable_span_filling(_SpanFilling):
    """Importers leave spans out."""

    def __init__(self) -> None:
        super().__init__(False)
