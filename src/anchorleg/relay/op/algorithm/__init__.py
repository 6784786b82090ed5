"""Operators that order elements: sort, argsort, topk, searchsorted."""
from __future__ import annotations

from .searchsorted import searchsorted
from .sort import argsort, sort
from .topk import topk

__all__ = ["argsort", "searchsorted", "sort", "topk"]
