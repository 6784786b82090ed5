"""Compiled modules as text, and what executors take."""
from __future__ import annotations

import numpy as np

from anchorleg import relay
from anchorleg.ir import IRModule


def _module():
    x = relay.var("x", shape=(4, 8))
    return IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.exp(x))))


def test_a_built_library_shows_its_code_and_hides_no_kernel():
    lib = relay.build(_module(), "llvm")
    names = [n for n in lib.functions]
    ir, assembly = lib.lib.get_source("ll"), lib.lib.get_source("asm")
    assert names and all(f"@{n}" in ir and n in assembly for n in names)


def test_numbers_of_another_type_are_converted():
    run = relay.create_executor("graph", mod=_module(), target="llvm").evaluate()
    whole = np.arange(32).reshape(4, 8) % 3
    np.testing.assert_allclose(run(whole).numpy(), run(whole.astype("float32")).numpy())
