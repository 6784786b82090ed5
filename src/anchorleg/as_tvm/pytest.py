"""A pytest plugin, ``-p anchorleg.as_tvm.pytest``: tests that import tvm get this package."""
from __future__ import annotations

from . import install

install()
