"""Random programs on the virtual machine and in the interpreter: one result, or both refuse; memory comes back."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import cpu, relay
from anchorleg.ir.transform import get_pass
from anchorleg.relay.backend.interpreter import ConstructorValue, Interpreter
from anchorleg.runtime.container import ADT, RefValue
from anchorleg.runtime.vm import VirtualMachine
from anchorleg.support.errors import AnchorlegError

from .random_programs import Maker, inputs

SIZES = [(2, 2, 2, 2), (2, 3, 3, 2), (3, 2, 2, 3), (2, 2, 2, 2), (1, 1, 1, 1), (0, 2, 0, 2)]
REFUSALS = (AnchorlegError, ValueError, IndexError)  # the numpy rules may raise what numpy raises


def plain(value):
    if isinstance(value, (ADT, ConstructorValue)):
        return (value.tag, *map(plain, value.fields))
    return ("ref", plain(value.value)) if isinstance(value, RefValue) else value.numpy()


def same(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)


def outcome(run, args, refusals):
    try:
        return plain(run(*args))
    except refusals:
        return None


def words(vm, *names):
    return [int(vm._memory.words[getattr(vm._memory.core, n) // 8]) for n in names]


def check(seed, depth):
    mod = Maker(seed).program(depth)
    interpreters = [Interpreter(m, cpu(0), "numpy").evaluate() for m in (mod, get_pass("DeadCodeElimination")(mod))]
    vm = VirtualMachine(relay.vm.compile(mod, "llvm"), cpu(0))
    for k, sizes in enumerate(SIZES):
        args = inputs(seed + k, sizes)
        given = [a.copy() for a in args]
        got = outcome(vm.run, args, AnchorlegError)
        wanted = [outcome(run, args, REFUSALS) for run in interpreters]  # what nobody reads need not be refused
        assert any((w is None) == (got is None) and (w is None or same(w, got)) for w in wanted), f"seed {seed}, sizes {sizes}"
        assert all(np.array_equal(a, b) for a, b in zip(args, given)), "an input was changed"
        assert words(vm, "M_CELLS") == [0], "a reference was left"
    held = words(vm, "M_HELD")
    for _ in range(20):
        outcome(vm.run, inputs(seed, SIZES[0]), AnchorlegError)
    assert words(vm, "M_HELD") == held, "memory grows"


@pytest.mark.parametrize("seed", range(8))
def test_some(seed):
    check(seed, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_many(seed):
    check(seed, 7)
