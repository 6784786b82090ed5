"""Memory planning of loop programs over pools, under the names upstream's users know.

``analysis.extract_buffer_info`` finds the buffers and their conflicts, ``algo`` places them, ``transform`` puts the places
into the program.  An ahead-of-time build plans its own
programs (``relay/backend/memory``); this is for programs at hand.
"""
from . import algo, analysis, transform, utils
from .utils import BufferInfo, BufferInfoAnalysis, PoolAllocation

__all__ = ["BufferInfo", "BufferInfoAnalysis", "PoolAllocation", "algo", "analysis", "transform", "utils"]
