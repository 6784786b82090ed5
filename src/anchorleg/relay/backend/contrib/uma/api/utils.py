"""When a backend's passes run."""
from __future__ import annotations

from enum import Enum, auto


class PassPhase(Enum):
    """Before or after the program is cut into parts; with loops and arrays of several dimensions, flat, transformed, cleaned up."""

    PRE_PARTITIONING = auto()
    POST_PARTITIONING_0 = auto()
    POST_PARTITIONING_1 = auto()
    TIR_PHASE_0 = auto()
    TIR_PHASE_1 = auto()
    TIR_PHASE_2 = auto()
    TIR_PHASE_3 = auto()


RELAY_PHASES = (PassPhase.PRE_PARTITIONING, PassPhase.POST_PARTITIONING_0, PassPhase.POST_PARTITIONING_1)
TIR_PHASES = (PassPhase.TIR_PHASE_0, PassPhase.TIR_PHASE_1, PassPhase.TIR_PHASE_2, PassPhase.TIR_PHASE_3)
