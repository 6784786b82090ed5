"""The modules through which upstream reaches its C++ functions: none of them has any here."""
from __future__ import annotations
