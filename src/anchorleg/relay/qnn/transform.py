"""Passes on quantised operators, at upstream's address."""
from __future__ import annotations

from ...ir.transform import Pass
from ..transform.legalize import Legalize as _legalize
from ..transform.qnn_canonicalize import QnnCanonicalize


def CanonicalizeOps() -> Pass:
    """Quantised operators become plain integer operators."""
    return QnnCanonicalize()


def Legalize() -> Pass:
    """Applies the operators' rules attached as ``FTVMQnnLegalize``."""
    return _legalize("FTVMQnnLegalize")
