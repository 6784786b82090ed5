"""Operators over quantised tensors, at the address callers know (declared in ``relay/op/qnn``)."""
from __future__ import annotations

from ...op.qnn import *  # noqa: F401,F403
