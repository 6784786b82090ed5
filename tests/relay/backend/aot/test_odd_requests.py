"""What users may ask for by mistake, and what is odd but right: a clear error at once, or the right results."""
from __future__ import annotations

import shutil

import ml_dtypes
import numpy as np
import pytest

from anchorleg import relay
from anchorleg.contrib.aot_executor import AotModule
from anchorleg.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.ir.module import IRModule
from anchorleg.ir.transform import PassContext
from anchorleg.relay.backend import Executor, Runtime
from anchorleg.runtime import cpu
from anchorleg.runtime.registry import register_func, remove_global_func
from anchorleg.support.errors import AnchorlegError, BuildError
from anchorleg.tir.usmp.utils import PoolAllocation

C_API = {"interface-api": "c", "unpacked-api": True}
TARGETS = [pytest.param("llvm"), pytest.param("c", marks=pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"))]


def var(name="x", shape=(2, 3), dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def module(*params, body, outputs=()):
    func = relay.Function(params, body)
    return IRModule({"main": func.with_attr("output_tensor_names", list(outputs)) if outputs else func})


def simple():
    x = var()
    return module(x, body=relay.nn.relu(x))


def build(mod=None, options=C_API, target="c", runtime="crt", config=None, **more):
    with PassContext(opt_level=3, config=config or {}):
        return relay.build(mod if mod is not None else simple(), target=target, executor=Executor("aot", options), runtime=Runtime(runtime), **more)


def check(mod, target, *values, **more):
    """The results are those of the graph executor."""
    expected = relay.create_executor("graph", mod, target="llvm").evaluate()(*values)
    expected = [e.numpy() for e in (expected if not hasattr(expected, "numpy") else [expected])]
    factory = build(mod, C_API if target == "c" else {}, target, "crt" if target == "c" else "cpp", **more)
    run = AotModule(factory["default"](cpu(0)))
    for i, value in enumerate(values):
        run.set_input(i, value)
    run.run()
    assert run.get_num_outputs() == len(expected)
    for i, want in enumerate(expected):
        got = run.get_output(i).numpy()
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=1e-2)
    return factory


# -- refused


def with_names(*names, shapes=None):
    params = [var(n, s) for n, s in zip(names, shapes or [(2, 3)] * len(names))]
    return module(*params, body=relay.Tuple(params))


def with_outputs(*names):
    x = var()
    return module(x, body=relay.Tuple([relay.nn.relu(x), x + x]), outputs=names)


def of_dtype(dtype):
    x = var(dtype=dtype)
    return module(x, body=x + x)


def conditional():
    c, x = var("c", (), "bool"), var()
    return module(c, x, body=relay.If(c, x, x + x))


def of_unknown_size():
    x = var(shape=(4,))
    return module(x, body=relay.argwhere(x))


def tiled():
    x = var(shape=(1, 1000))
    return module(x, body=relay.tile(x, (10, 1)))


SMALL_POOL = WorkspaceMemoryPools([WorkspacePoolInfo("sram", [], PoolInfoProperties(5000))])
REFUSED = {
    "an option that does not exist": (lambda: build(options={"unknown": 1}), 'Attribute "unknown" is not available on this Executor; aot has: link-params'),
    "an interface that does not exist": (lambda: build(options={"interface-api": "rust"}), 'expected to be "c" or "packed", got "rust"'),
    "an interface that is no text": (lambda: build(options={"interface-api": 3}), 'Attribute "interface-api" should have type "runtime.String"'),
    "an option of another type": (lambda: build(options={"interface-api": "c", "unpacked-api": "yes"}), 'Attribute "unpacked-api" should have type "IntImm"'),
    "the c interface with packed calls": (lambda: build(options={"interface-api": "c"}), "Either need interface_api"),
    "the c interface with the runtime cpp": (lambda: build(runtime="cpp"), "or build with Runtime"),
    "no alignment": (lambda: build(options={**C_API, "workspace-byte-alignment": 0}), "power of two up to 65536, got 0"),
    "a negative alignment": (lambda: build(options={**C_API, "workspace-byte-alignment": -8}), "power of two up to 65536, got -8"),
    "a crooked alignment": (lambda: build(options={**C_API, "constant-byte-alignment": 12}), "constant-byte-alignment is expected to be a power of two"),
    "a huge alignment": (lambda: build(options={**C_API, "workspace-byte-alignment": 1 << 40}), "up to 65536"),
    "an alignment in words": (lambda: build(options={**C_API, "workspace-byte-alignment": "sixteen"}), "should have type"),
    "an executor that does not exist": (lambda: Executor("aott"), 'Executor "aott" is not defined; available: aot, graph'),
    "a runtime that does not exist": (lambda: Runtime("rust"), 'Runtime "rust" is not defined; available: cpp, crt'),
    "a target without code": (lambda: build(target="cuda"), "builds for the targets c and llvm, got cuda"),
    "two targets": (lambda: build(target=["c", "llvm"]), "give one"),
    "an algorithm that does not exist": (lambda: build(config={"tir.usmp.algorithm": "magic"}), "'magic' is not known; available: greedy_by_size"),
    "an algorithm that nobody registered": (lambda: build(config={"tir.usmp.custom_algorithm": "mine"}), "register it as 'tir.usmp.algo.mine'"),
    "a switch that is text": (lambda: build(config={"tir.usmp.enable": "yes"}), "'tir.usmp.enable' is expected to be bool"),
    "pools for the graph executor": (lambda: relay.build(simple(), "llvm", workspace_memory_pools=SMALL_POOL), "memory pools are for the ahead-of-time executor"),
    "a result larger than the pool": (lambda: build(tiled(), config={"tir.usmp.use_workspace_io": True}, workspace_memory_pools=SMALL_POOL),
                                      r"sram: 5000 bytes.*output 'output' needs 40000 bytes, and pool 'sram' lacks 35000 of them"),
    "inputs that are one in C": (lambda: build(with_names("a:0", "a_0")), "Sanitized input tensor name clash: 'a:0' and 'a_0' are both 'a_0' in C; rename one"),
    "inputs whose sizes have one macro": (lambda: build(with_names("a", "A", shapes=[(2,), (3,)])), "'a' of 8 bytes and 'A' of 12 bytes have one macro"),
    "an input that hides a macro": (lambda: build(with_names("workspace")), "the input 'workspace' cannot be told from the memory pools' size"),
    "results that are one in C": (lambda: build(with_outputs("y", "y")), "Sanitized output tensor name clash"),
    "a name too many": (lambda: build(with_outputs("a", "b", "c")), "output_tensor_names names 3 results, but the model has 2"),
    "complex numbers": (lambda: build(of_dtype("complex64")), "unknown data type 'complex64'"),
    "numbers of four bits": (lambda: build(of_dtype("int4")), "int4 has no C99 type"),
    "sizes that inputs tell": (lambda: build(module(x := var(shape=(relay.Any(), 3)), body=relay.nn.relu(x))),
                               "ahead-of-time executor needs static shapes, but parameter 'x'.*fix the input shapes"),
    "sizes that values tell": (lambda: build(of_unknown_size()), "ahead-of-time executor needs static shapes, but a call"),
    "a branch": (lambda: build(conditional()), "the ahead-of-time executor has no control flow: main holds a If; build for the VM"),
    "a reference": (lambda: build(module(x := var(), body=relay.RefRead(relay.RefCreate(x)))), "no control flow: main holds a RefRead"),
    "a function as a result": (lambda: build(module(x := var(), body=relay.Function([], x))), "no control flow: main holds a Function"),
    "no runtime": (lambda: relay.build(simple(), "c", executor=Executor("aot"), runtime=None), "expected to be a relay.backend.Runtime, got NoneType"),
    "a model's name that symbols cannot have": (lambda: build(mod_name="für"), "the module name 'für' is expected to be of ASCII characters"),
    "no module": (lambda: build("hello"), "expected an IRModule to build, got str"),
}


@pytest.mark.parametrize("request_", REFUSED)
def test_refused(request_):
    attempt, text = REFUSED[request_]
    with pytest.raises(AnchorlegError, match=text):
        attempt()


# -- odd, and right


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "bfloat16", "float64"])
def test_every_dtype(dtype, target):
    x, y = var("x", (2, 3), dtype), var("y", (2, 3), dtype)
    value = np.array([[1, 0, 1], [0, 1, 1]]).astype({"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype))
    check(module(x, y, body=relay.logical_and(x, y) if dtype == "bool" else x + y), target, value, value)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_names_of_all_kinds():
    """Words of C and C++, macros, digits, other alphabets, ends of comments, names the code uses itself."""
    names = ["int", "class", "3x", "é", "a*/b", "inputs", "linux", "NULL", "a" * 300, "x_buffer_var", "memcpy", "main", "int32_t", "output", "", "i0"]
    factory = check(with_names(*names), "c", *(np.full((2, 3), i, "float32") for i in range(len(names))))
    assert "void* int_;" in factory.lib.sources.header and "void* _3x;" in factory.lib.sources.header


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", ["3d-net", 'a b*/c"\n', ""])
def test_names_of_models(name):
    check(simple(), "c", np.ones((2, 3), "float32"), mod_name=name)


@pytest.mark.parametrize("target", TARGETS)
def test_a_result_named_like_an_input(target):
    check(with_outputs("x", "int"), target, np.ones((2, 3), "float32"))
    check(with_names("a", "A"), target, np.ones((2, 3), "float32"), np.zeros((2, 3), "float32"))


@pytest.mark.parametrize("target", TARGETS)
def test_scalars_and_empty_tensors(target):
    x = var("x", ())
    check(module(x, body=x + relay.const(1.0)), target, np.float32(2))
    a, b = var("a", (0, 4)), var("b", (2, 4))
    body = relay.Tuple([relay.concatenate((a, b), 0), relay.nn.relu(a), relay.sum(a, axis=0), relay.concatenate((relay.nn.relu(relay.strided_slice(b, [0, 0], [0, 4])), b), 0)])
    check(module(a, b, body=body), target, np.zeros((0, 4), "float32"), np.ones((2, 4), "float32"))


@pytest.mark.parametrize("target", TARGETS)
def test_no_inputs_no_work_no_results(target):
    three = relay.const(np.arange(3, dtype="int64"))
    check(module(body=three + three), target)
    x = var()
    check(module(x, body=x), target, np.ones((2, 3), "float32"))
    assert build(module(x, body=relay.Tuple([])), C_API if target == "c" else {}, target, "crt" if target == "c" else "cpp").facts.outputs == ()


@pytest.mark.parametrize("target", TARGETS)
def test_constants_of_all_kinds(target):
    values = [np.array([True, False]), np.array([1, -2], "float16"), np.array([1, -2], ml_dtypes.bfloat16), np.array([-2**63, 2**63 - 1]),
              np.array([0, 2**64 - 1], "uint64"), np.array([np.nan, np.inf, -np.inf, -0.0])]
    x = var()
    factory = build(module(x, body=relay.Tuple([x, *map(relay.const, values)])), C_API if target == "c" else {}, target, "crt" if target == "c" else "cpp")
    run = AotModule(factory["default"](cpu(0)))
    run.run(x=np.ones((2, 3), "float32"))
    for i, want in enumerate(values):
        assert run.get_output(i + 1).numpy().tobytes() == want.tobytes()


@pytest.mark.parametrize("options,target,runtime", [({}, "c", "cpp"), ({}, "c", "crt"), ({}, "llvm", "cpp"), (C_API, "c", "crt")])
def test_parameters_that_are_handed_over(options, target, runtime):
    if target == "c" and shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    x, w = var("x", (2, 4)), np.arange(12, dtype="float32").reshape(3, 4)
    factory = build(module(x, body=relay.nn.dense(x, relay.const(w))), {**options, "link-params": False}, target, runtime)
    run = AotModule(factory["default"](cpu(0)))
    run.run(x=np.ones((2, 4), "float32"))
    np.testing.assert_allclose(run.get_output(0).numpy(), np.ones((2, 4)) @ w.T)


def test_alignments_are_never_less_than_elements_need():
    """int8 buffers of odd sizes between those of float64."""
    x, w = var("x", (1, 33), "int8"), relay.const(np.ones((33, 33), "int8"))
    y = relay.annotation.stop_fusion(relay.cast(relay.nn.dense(x, w, out_dtype="int32"), "float64"))
    y = relay.annotation.stop_fusion(relay.cast(relay.nn.relu(y), "int8"))
    factory = build(module(x, body=relay.nn.dense(y, w, out_dtype="int32")), {**C_API, "workspace-byte-alignment": 1})
    assert all(p.offset % 8 == 0 for p in factory.plan.places) and "aligned(8)" in factory.lib.sources.files["lib1.c"]


# -- a user's own planning


def stacked(buffers, pressure):
    """Every buffer after the others in its first pool."""
    places, at = {}, 0
    for b in buffers:
        places[b] = PoolAllocation(b.pool_candidates[0], at)
        at += -(-b.size_bytes // b.alignment) * b.alignment
    assert pressure <= at and all(c in buffers for b in buffers for c in b.conflicts)
    return places


def chain():
    x, w = var("x", (1, 64)), relay.const(np.eye(64, dtype="float32"))
    y = x
    for _ in range(4):
        y = relay.nn.relu(relay.nn.dense(y, w))
    return module(x, body=y)


@pytest.fixture
def planned_by():
    """Registers a planning function as ``mine`` for one test."""
    yield lambda function: register_func("tir.usmp.algo.mine", function)
    remove_global_func("tir.usmp.algo.mine")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_a_planning_function_of_the_users(planned_by):
    planned_by(stacked)
    factory = check(chain(), "c", np.ones((1, 64), "float32"), config={"tir.usmp.custom_algorithm": "mine"})
    assert factory.plan.total == 3 * 256 and [p.offset for p in factory.plan.places] == [0, 256, 512]


@pytest.mark.parametrize("planned,text", [
    (lambda buffers, pressure: {b: PoolAllocation(b.pool_candidates[0], 0) for b in buffers}, "which hold something at one time, overlap"),
    (lambda buffers, pressure: {b: PoolAllocation(b.pool_candidates[0], 7) for b in buffers}, "at 7, expected a multiple of 16"),
    (lambda buffers, pressure: {}, "is expected to give .* a PoolAllocation in one of its pool_candidates, got None"),
    (lambda buffers, pressure: 3, "expected to return a dictionary buffer → PoolAllocation, got int"),
    (lambda buffers, pressure: {b: PoolAllocation(b.pool_candidates[0], 4992) for b in buffers}, "end at 5248 in pool 'sram' of 5000 bytes"),
])
def test_what_a_planning_function_gives_is_checked(planned, text, planned_by):
    planned_by(planned)
    with pytest.raises((BuildError, AnchorlegError), match=text):
        build(chain(), config={"tir.usmp.custom_algorithm": "mine"}, workspace_memory_pools=SMALL_POOL)
