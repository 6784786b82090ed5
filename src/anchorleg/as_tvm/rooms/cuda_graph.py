"""``tvm.contrib.cuda_graph``: recorded launches need CUDA, which is not part of this package."""
from __future__ import annotations

from . import absent as cuda_graph_executor

__all__ = ["cuda_graph_executor"]
