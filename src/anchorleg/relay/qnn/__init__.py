"""Quantised neural networks: the operators are in ``relay.qnn.op``."""
from __future__ import annotations

from . import op
