"""Values of unknown size where a declared type tells the size: every executor refuses those that have another."""
from __future__ import annotations

import numpy as np
import pytest

from anchorleg import cpu, relay
from anchorleg.support.errors import ArgumentError

T2, TU = "Tensor[(2), float32]", "Tensor[(?), float32]"
PROGRAMS = {
    "a function's argument": f"def @f(%x: {T2}) -> {T2} {{ add(%x, %x) }} def @main(%y: {TU}, %z: {T2}) {{ @f(%y) }}",
    "in a tuple": f"def @f(%x: (({T2}, {T2}), {TU})) -> {T2} {{ add(%x.0.0, %x.0.1) }} def @main(%y: {TU}, %z: {T2}) {{ @f(((%z, %y), %z)) }}",
    "a local function's argument": f"def @main(%y: {TU}, %z: {T2}) {{ let %f = fn (%x: {T2}) -> {T2} {{ add(%x, %z) }}; %f(%y) }}",
    "a closure's argument": f"""def @main(%y: {TU}, %z: {T2}) {{
        let %f = (fn (%x: {T2}) -> {T2} {{ add(%x, %z) }}, 1); let %g = %f.0; %g(%y) }}""",
    "a closure that was made for unknown sizes": f"""def @call(%f: fn ({TU}) -> {T2}, %y: {TU}) -> {T2} {{ negative(%f(%y)) }}
        def @main(%y: {TU}, %z: {T2}) {{ @call(fn (%x: {TU}) -> {TU} {{ add(%x, %x) }}, %y) }}""",
    "a result": f"def @main(%y: {TU}, %z: {T2}) -> {T2} {{ add(%y, %y) }}",
    "the argument itself as the result": f"def @main(%y: {TU}, %z: {T2}) -> {T2} {{ %y }}",
    "what a reference holds": f"def @main(%y: {TU}, %z: {T2}) {{ let %r = ref(%z); let %u = ref_write(%r, %y); negative(ref_read(%r)) }}",
    "a branch": f"def @main(%y: {TU}, %z: {T2}) -> {T2} {{ if (less(sum(%z), 100f)) {{ %y }} else {{ %z }} }}",
    "a constructor's argument": f"type L {{ C({T2}, L), N }} def @main(%y: {TU}, %z: {T2}) {{ C(%y, N) }}",
    "a field": f"""type L[A] {{ C(A, L[A]), N }} def @head(%l: L[{T2}]) -> {T2} {{ match? (%l) {{ C(%h, _) => negative(%h) }} }}
        def @main(%y: {TU}, %z: {T2}) {{ let %l: L[{TU}] = C(%y, N); @head(%l) }}""",
}


def run(kind, text, *args):
    mod = relay.fromtext('#[version = "0.0.5"]\n' + text)
    return relay.create_executor(kind, mod=mod, device=cpu(0), target="llvm").evaluate()(*args)


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_another_size_is_refused(name, kind):
    z = np.ones(2, "float32")
    run(kind, PROGRAMS[name], z, z)
    for size in (0, 1, 3):
        with pytest.raises(ArgumentError, match="size|shape"):
            run(kind, PROGRAMS[name], np.ones(size, "float32"), z)


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_arguments_of_the_program(kind):
    with pytest.raises(ArgumentError, match=r"argument '?x'?: expected shape \(2"):
        run(kind, f"def @main(%x: {T2}) {{ %x }}", np.ones(3, "float32"))


def test_a_loop_over_declared_types_is_still_a_loop():
    text = f"""def @loop(%i: int32, %x: {T2}) -> {T2} {{ if (equal(%i, 0)) {{ %x }} else {{ @loop(subtract(%i, 1), add(%x, %x)) }} }}
        def @main(%y: {TU}) -> {T2} {{ @loop(2000000, %y) }}"""
    np.testing.assert_array_equal(run("vm", text, np.zeros(2, "float32")).numpy(), np.zeros(2))
