"""The guard itself: it sees an access beyond a buffer, and a value that was never written."""
from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from anchorleg import relay

from .guarded import run_guarded
from .models import build_c, mlp, module

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def altered(factory, **changes):
    """A factory whose program is another one."""
    built = factory.built._replace(program=factory.built.program._replace(**changes))
    return SimpleNamespace(built=built, facts=factory.facts)


def test_an_access_beyond_a_buffer_is_seen(tmp_path):
    factory = build_c(mlp())
    assert len(run_guarded(factory, tmp_path)) == 1
    smaller = [b._replace(size=b.size - 4) for b in factory.built.program.buffers]
    with pytest.raises(AssertionError, match="heap-buffer-overflow"):
        run_guarded(altered(factory, buffers=smaller), tmp_path)


def test_what_nobody_wrote_is_no_zero(tmp_path):
    x, w = relay.var("x", shape=(1, 4), dtype="float32"), relay.const(np.eye(4, dtype="float32"))
    factory = build_c(module([x], relay.nn.dense(relay.nn.dense(x, w), w)))
    steps = factory.built.program.steps
    assert len(steps) == 2
    (got,) = run_guarded(altered(factory, steps=steps[1:]), tmp_path)
    assert np.isnan(got).all()
