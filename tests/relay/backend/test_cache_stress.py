"""The cache of kernels under several processes, some of them killed."""
from __future__ import annotations

import os

import pytest

from .cache_stress import hold

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes")


@pytest.mark.slow
def test_many() -> None:
    hold(200, 8)


@pytest.mark.slow
def test_a_few() -> None:
    hold(8, 4)
