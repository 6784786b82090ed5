"""Accelerators described as one class."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anchorleg import cpu, relay, te
from anchorleg.ir import IRModule
from anchorleg.relay.backend.contrib.uma import UMABackend, uma_available
from anchorleg.relay.backend.contrib.uma.api import PassPhase, UMALower, UMAPartitioner
from anchorleg.relay.dataflow_pattern import is_op, wildcard
from anchorleg.relay.op.contrib import get_pattern_table
from anchorleg.relay.transform import InferType
from anchorleg.runtime.c_compiler import find_compiler
from anchorleg.runtime.source_module import CSourceModule
from anchorleg.support.errors import ArgumentError, BuildError
from anchorleg.target import Target
from anchorleg.tir.buffer import BufferLoad
from anchorleg.tir.functor import post_order
from anchorleg.tir.transform import prim_func_pass

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
A, B = (np.random.default_rng(0).standard_normal((2, 3)).astype("float32") for _ in range(2))


class Adder(UMABackend):
    """Takes ReLUs of sums; says what it saw."""

    def __init__(self, name: str, fmt: str | None = "c", strategy: Any = None) -> None:
        self._name, self.seen = name, []  # type: ignore[var-annotated]
        super().__init__()
        self._register_target_attr("cores", default=1)
        self._register_target_attr("fast", default=False)
        self._register_pattern("sum_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))
        self._register_tir_pass(PassPhase.TIR_PHASE_0, self._note("loops"))
        self._register_tir_pass(PassPhase.TIR_PHASE_1, self._note("flat"))
        if strategy is not None:
            self._register_operator_strategy("nn.relu", strategy)
        if fmt is not None:
            self._register_codegen(fmt=fmt, includes=lambda: "/* of the adder */\n#define ADDER 1")

    @property
    def target_name(self) -> str:
        return self._name

    def _note(self, what: str) -> Any:
        def note(func: Any, mod: Any, ctx: Any) -> Any:
            self.seen.append((what, str(func.get_attr("global_symbol")), max(len(n.indices) for n in post_order(func.body) if isinstance(n, BufferLoad))))
            return func

        return prim_func_pass(note, opt_level=0, name=f"note_{what}")


def model() -> Any:
    a, b = (relay.var(n, shape=(2, 3)) for n in "ab")
    return IRModule.from_expr(relay.Function([a, b], relay.exp(relay.nn.relu(relay.add(a, b)))))


def run(kind: str, mod: IRModule, target: Any) -> np.ndarray:
    return relay.create_executor(kind, mod, cpu(0), target).evaluate()(A, B).numpy()


@needs_compiler
@pytest.mark.parametrize("kind, target", [("graph", "llvm"), ("vm", "llvm"), ("debug", "llvm"), ("aot", "llvm"), ("aot", "c")])
def test_a_backend_from_end_to_end(kind: str, target: str) -> None:
    name = f"uma_{kind}_{target}"
    backend = Adder(name)
    backend.register()
    mod = backend.partition(model())
    assert [g.name_hint for g in mod.functions if g.name_hint != "main"] == [f"tvmgen_default_{name}_main_0"]
    np.testing.assert_allclose(run(kind, mod, target), np.exp(np.maximum(A + B, 0)), rtol=1e-5)
    assert backend.seen == [("loops", f"tvmgen_default_{name}_main_0", 2), ("flat", f"tvmgen_default_{name}_main_0", 1)]


class Convolutions(UMABackend):
    """Takes convolutions, with their scratch memory."""

    def __init__(self) -> None:
        super().__init__()
        self._register_pattern("conv2d", is_op("nn.conv2d")(wildcard(), wildcard()))
        self._register_codegen()

    @property
    def target_name(self) -> str:
        return "uma_convolutions"


@needs_compiler
@pytest.mark.parametrize("kind, target", [("graph", "llvm"), ("vm", "llvm"), ("aot", "llvm"), ("aot", "c")])
def test_functions_take_their_scratch_memory_from_the_runtime(kind: str, target: str) -> None:
    x, w = relay.var("x", shape=(1, 2, 5, 5)), relay.var("w", shape=(3, 2, 3, 3))
    mod = IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3), channels=3)))
    backend, rng = Convolutions(), np.random.default_rng(1)
    backend.register()
    args = [rng.standard_normal(s).astype("float32") for s in ((1, 2, 5, 5), (3, 2, 3, 3))]
    got = relay.create_executor(kind, backend.partition(mod), cpu(0), target).evaluate()(*args).numpy()
    want = relay.create_executor("debug", mod, cpu(0), "numpy").evaluate()(*args).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_the_code_begins_with_what_the_backend_includes() -> None:
    backend = Adder("uma_code")
    backend.register()
    lib = relay.build(InferType()(backend.partition(model())), ["llvm", "uma_code -cores=4 -fast=1"]).get_lib()
    (module,) = lib.imported_modules
    assert isinstance(module, CSourceModule) and "#define ADDER 1" in module.get_source() and "tvmgen_default_uma_code_main_0_kernel" in module.get_source()
    assert Target("uma_code").attrs["cores"] == 1 and Target("uma_code").get_kind_attr("is_external_codegen")


def test_without_code_generation_functions_are_compiled_like_others() -> None:
    backend = Adder("uma_plain", fmt=None)
    backend.register()
    np.testing.assert_allclose(run("graph", backend.partition(model()), "llvm"), np.exp(np.maximum(A + B, 0)), rtol=1e-5)


def test_strategies_are_the_backends_own() -> None:
    def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
        found = relay.op.OpStrategy()
        found.add_implementation(lambda attrs, inputs, out_type: [te.compute(inputs[0].shape, lambda *i: inputs[0](*i) * 2.0)],
                                 lambda attrs, outs, target: te.create_schedule([o.op for o in outs]), name="twice")
        return found

    backend = Adder("uma_strategy", fmt=None, strategy=strategy)
    backend.register()
    mod = backend.partition(model())
    np.testing.assert_allclose(run("graph", mod, "llvm"), np.exp(2 * (A + B)), rtol=1e-5)
    np.testing.assert_allclose(run("graph", model(), "llvm"), np.exp(np.maximum(A + B, 0)), rtol=1e-5)


def test_constants_are_arguments() -> None:
    a, b = (relay.var(n, shape=(2, 3)) for n in "ab")
    mod = IRModule.from_expr(relay.Function([a, b], relay.nn.relu(relay.add(a, b))))
    backend = Adder("uma_constants", fmt=None)
    backend.register()
    cut = backend.partition(mod, {"b": B})
    assert len(mod["main"].params) == 2 and len(cut["main"].body.args) == 2
    result = relay.create_executor("graph", cut, cpu(0), "llvm").evaluate()(A).numpy()
    np.testing.assert_allclose(result, np.maximum(A + B, 0), rtol=1e-6)


def test_passes_of_all_phases_run_in_order() -> None:
    partitioner, order = UMAPartitioner("uma_phases"), []  # type: ignore[var-annotated]
    from anchorleg.ir.transform import module_pass

    for phase in (PassPhase.POST_PARTITIONING_1, PassPhase.PRE_PARTITIONING, PassPhase.POST_PARTITIONING_0):
        partitioner._relay_passes.append((phase, module_pass(lambda mod, ctx, p=phase: (order.append((p, len(mod.functions))), mod)[1], opt_level=0, name=phase.name)))
    partitioner.add_pattern("relu", is_op("nn.relu")(wildcard()))
    assert get_pattern_table("uma_phases") is None
    partitioner.register()
    assert [entry[0] for entry in get_pattern_table("uma_phases")] == ["uma_phases.relu"]
    partitioner.partition(model())
    assert order == [(PassPhase.PRE_PARTITIONING, 1), (PassPhase.POST_PARTITIONING_0, 2), (PassPhase.POST_PARTITIONING_1, 2)]


def test_what_is_not_accepted_is_named() -> None:
    backend = Adder("uma_wrong", fmt=None)
    with pytest.raises(ArgumentError, match='Unsupported codegen format "cuda"'):
        backend._register_codegen("cuda")
    with pytest.raises(ArgumentError, match="the phase is expected to be one of TIR_PHASE_0, .*, got 'PRE_PARTITIONING'"):
        backend._register_tir_pass(PassPhase.PRE_PARTITIONING, None)
    with pytest.raises(ArgumentError, match="expected to be one of PRE_PARTITIONING, .*, got 'TIR_PHASE_1'"):
        backend._register_relay_pass(PassPhase.TIR_PHASE_1, InferType())
    backend._register_target_attr("nothing", None)
    with pytest.raises(ArgumentError, match="Target attribute None is not supported: give nothing a default"):
        backend.register()
    assert "uma_wrong" not in Target.list_kinds() and uma_available()


def test_an_operator_that_cannot_be_lowered_is_named_with_its_function() -> None:
    class Broken(Adder):
        def __init__(self) -> None:
            super().__init__("uma_broken", None)
            self._relay_to_tir._tir_passes.append((PassPhase.TIR_PHASE_0, prim_func_pass(self._fail, opt_level=0, name="fail")))

        @staticmethod
        def _fail(func: Any, mod: Any, ctx: Any) -> Any:
            raise ValueError("no room")

    backend = Broken()
    backend.register()
    with pytest.raises(BuildError, match=r"'uma_broken' \(the RelayToTIR pass.*failed on the functions tvmgen_default_uma_broken_main_0: ValueError: no room"):
        run("graph", backend.partition(model()), "llvm")
    assert isinstance(backend._relay_to_tir, UMALower)
