"""A pytest plugin, ``-p anchorleg.as_tvm.pytest``: tests that import tvm get this package."""
from __future__ import annotations

from . import install

install()

from ..testing import callbacks, target_hooks  # noqa: E402,F401  (declare what upstream's tests take for given)
