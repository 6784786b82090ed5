"""Functions of external compilers in the executors: what runs, what is exported, what is said when something is wrong."""
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anchorleg import cpu, relay, te
from anchorleg.driver import lower
from anchorleg.ir import IRModule, register_op_attr
from anchorleg.ir.transform import Sequential
from anchorleg.relay.backend.external import compile_external, external_constants
from anchorleg.relay.backend.graph_executor_codegen import fused_name
from anchorleg.relay.backend.te_compiler import TECompiler
from anchorleg.relay.op.annotation import compiler_begin, compiler_end
from anchorleg.relay.op.call import call_lowered
from anchorleg.relay.task_extraction import lower_for_tasks
from anchorleg.relay.transform import AnnotateTarget, InferType, MergeCompilerRegions, PartitionGraph
from anchorleg.runtime import vm
from anchorleg.runtime.c_compiler import find_compiler
from anchorleg.runtime.compiled import CompiledModule
from anchorleg.runtime.graph_executor import GraphModule, create
from anchorleg.runtime.module import PythonModule, load_module
from anchorleg.runtime.registry import register_func, remove_global_func
from anchorleg.runtime.source_module import CSourceModule
from anchorleg.support.errors import AnchorlegError, ArtifactError, BuildError, TargetError, TypeMismatchError, UnsupportedOpError
from anchorleg.target import Target
from anchorleg.testing import target_hooks

from ..transform.graphs import random_graph
from ..transform.passes import inputs, values

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
KINDS = ("graph", "vm", "debug", "aot")
each_executor = pytest.mark.parametrize("kind", KINDS)
A = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
B = np.linspace(2, 5, 6, dtype="float32").reshape(2, 3)


@pytest.fixture(autouse=True)
def unregister() -> Iterator[None]:
    """Forgets the external compilers that a test registers."""
    from anchorleg.runtime.registry import list_global_func_names

    before = set(list_global_func_names())
    yield
    for name in set(list_global_func_names()) - before:
        if name.startswith("relay.ext."):
            remove_global_func(name)


def external(make: Any, *args: Any, compiler: str = "test_external", symbol: str = "ext_0", **attrs: Any) -> Any:
    """A call of a function for an external compiler."""
    params = [relay.var(f"p{i}", shape=a.type_annotation.shape if isinstance(a, relay.Var) else (2, 3)) for i, a in enumerate(args)]
    func = relay.Function(params, make(*params)).with_attr({"Primitive": 1, "Compiler": compiler, "global_symbol": symbol, **attrs})
    return relay.Call(func, list(args))


def variables() -> tuple[Any, Any]:
    return relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3))


def run(kind: str, expr: Any, *args: np.ndarray, target: Any = "llvm") -> list[np.ndarray]:
    mod = expr if isinstance(expr, IRModule) else IRModule.from_expr(expr)
    result = relay.create_executor(kind, mod, cpu(0), target).evaluate()(*args)
    return [r.numpy() for r in (result if not hasattr(result, "numpy") else [result])]


def register_python(log: list[str] | None = None) -> None:
    """An external compiler whose functions subtract, whatever their bodies say, so that it shows who ran."""
    @register_func("relay.ext.test_external")
    def generate(func: Any) -> PythonModule:
        if log is not None:
            log.append(func.get_attr("global_symbol"))
        return PythonModule({func.get_attr("global_symbol"): lambda a, b, out: out.copyfrom(a.numpy() - b.numpy())})


@each_executor
def test_the_external_compilers_code_runs(kind: str) -> None:
    log: list[str] = []
    register_python(log)
    a, b = variables()
    (got,) = run(kind, relay.Function([a, b], relay.exp(external(relay.add, relay.tanh(a), b))), A, B)
    np.testing.assert_allclose(got, np.exp(np.tanh(A) - B), rtol=1e-5)
    assert log == ["ext_0"]


def test_by_the_numpy_rules_a_function_means_what_its_body_says() -> None:
    a, b = variables()
    (got,) = run("debug", relay.Function([a, b], external(relay.add, a, b)), A, B, target="numpy")
    np.testing.assert_array_equal(got, A + B)


@each_executor
def test_a_global_function_is_compiled_once_and_called_twice(kind: str) -> None:
    log: list[str] = []
    register_python(log)
    mod = relay.parse('''#[version = "0.0.5"]
def @main(%a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32]) { @ext_0(@ext_0(%a, %b), %b) }
def @ext_0(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], Inline=1, Primitive=1, Compiler="test_external", global_symbol="ext_0")
  -> Tensor[(2, 3), float32] { add(%x, %y) }''')
    (got,) = run(kind, mod, A, B)
    np.testing.assert_allclose(got, A - B - B, rtol=1e-6)
    assert log == ["ext_0"]


@each_executor
def test_several_results(kind: str) -> None:
    @register_func("relay.ext.test_external")
    def generate(func: Any) -> PythonModule:
        def both(a: Any, first: Any, second: Any) -> None:
            first.copyfrom(a.numpy() + 1)
            second.copyfrom(a.numpy() + 2)

        return PythonModule({"ext_0": both})

    a, _ = variables()
    pair = external(lambda p: relay.Tuple([relay.exp(p), relay.tanh(p)]), a)
    one, two = run(kind, relay.Function([a], relay.Tuple([relay.TupleGetItem(pair, 1), relay.negative(relay.TupleGetItem(pair, 0))])), A)
    np.testing.assert_array_equal(one, A + 2)
    np.testing.assert_array_equal(two, -(A + 1))


@needs_compiler
@each_executor
def test_c_code_of_the_example_compiler(kind: str) -> None:
    a, b = variables()
    c = relay.const(np.float32([1, 2, 3]))
    first = external(lambda p, q: relay.multiply(relay.add(p, q), c), a, b, compiler="ccompiler", symbol="cc_0")
    second = external(relay.subtract, first, a, compiler="ccompiler", symbol="cc_1")
    (got,) = run(kind, relay.Function([a, b], relay.nn.relu(second)), A, B)
    np.testing.assert_allclose(got, np.maximum((A + B) * np.float32([1, 2, 3]) - A, 0), rtol=1e-6)


@each_executor
@pytest.mark.parametrize("hook, target, want", [
    ({}, "llvm", lambda a, b: a - b), ({}, "c", lambda a, b: a - b), ({}, ["llvm", "example_target_hook -example_attribute=42"], lambda a, b: a - b - 42),
    pytest.param({"tir_to_runtime": 1}, "llvm", lambda a, b: a * b, marks=needs_compiler)])
def test_loop_programs_of_target_kinds(kind: str, hook: dict[str, Any], target: Any, want: Any) -> None:
    a, b = variables()
    call = external(relay.add, a, b, compiler=target_hooks.NAME, symbol="hooked", **hook)
    (got,) = run(kind, relay.Function([a, b], relay.multiply(call, relay.const(np.float32(2)))), A, B, target=target)
    np.testing.assert_allclose(got, 2 * want(A, B), rtol=1e-5)


@each_executor
def test_loop_programs_of_the_user(kind: str) -> None:
    x, y = (te.placeholder((2, 3), name=n) for n in "xy")
    out = te.compute((2, 3), lambda i, j: x[i, j] * y[i, j] + 1)
    program = lower(te.create_schedule(out.op), [x, y, out], "mine")["mine"]
    var = relay.GlobalVar("mine")
    a, b = variables()
    var._checked_type = relay.FuncType([a.type_annotation, b.type_annotation], a.type_annotation)
    mod = IRModule({var: program, "main": relay.Function([a, b], relay.negative(call_lowered(var, [a, b])))})
    np.testing.assert_allclose(run(kind, mod, A, B)[0], -(A * B + 1), rtol=1e-6)


def partitioned() -> IRModule:
    a, _ = variables()
    region = compiler_end(relay.add(compiler_begin(a, "ccompiler"), compiler_begin(relay.const(B), "ccompiler")), "ccompiler")
    return PartitionGraph()(InferType()(IRModule.from_expr(relay.Function([a], relay.tanh(region)))))


@needs_compiler
@pytest.mark.parametrize("options", [{"link": True}, {"link": False}])
def test_graphs_are_exported_with_external_code_and_constants(tmp_path: Path, options: dict[str, Any]) -> None:
    lib = relay.build(partitioned(), "llvm")
    assert not lib.get_params()
    file = lib.export_library(tmp_path / "model.so", **options)
    module = GraphModule(load_module(file)["default"](cpu(0)))
    module.set_input(0, A)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), np.tanh(A + B), rtol=1e-6)
    apart = create(lib.get_graph_json(), load_module(lib.get_lib().export_library(tmp_path / "lib.so", **options)), cpu(0))
    apart.set_input(0, A)
    apart.run()
    np.testing.assert_allclose(apart.get_output(0).numpy(), np.tanh(A + B), rtol=1e-6)


@needs_compiler
@pytest.mark.parametrize("options", [{"link": True}, {"link": False}])
def test_executables_are_exported_with_external_code_and_constants(tmp_path: Path, options: dict[str, Any]) -> None:
    exe = relay.vm.compile(partitioned(), "llvm")
    machines = [vm.VirtualMachine(load_module(exe.export_library(tmp_path / "model.so", **options)), cpu(0))]
    code, lib = exe.save()
    machines.append(vm.VirtualMachine(vm.Executable.load_exec(code, load_module(lib.export_library(tmp_path / "lib.so", **options))), cpu(0)))
    for machine in machines:
        np.testing.assert_allclose(machine.run(A).numpy(), np.tanh(A + B), rtol=1e-6)


@needs_compiler
def test_machines_in_several_threads_call_the_same_function() -> None:
    a, b = variables()
    expr = external(relay.add, external(relay.multiply, a, b, compiler="ccompiler", symbol="cc_0"), b, compiler="ccompiler", symbol="cc_1")
    exe = relay.vm.compile(IRModule.from_expr(relay.Function([a, b], expr)), "llvm")
    assert [e.payload for e in exe.packed if e.kind == "external"] == [[[[2, 3], "float32"]] * 3] * 2

    def work(seed: int) -> bool:
        machine, rng = vm.VirtualMachine(exe, cpu(0)), np.random.default_rng(seed)
        pairs = [rng.standard_normal((2, 2, 3)).astype("float32") for _ in range(60)]
        return all(np.allclose(machine.run(p, q).numpy(), p * q + q, rtol=1e-5) for p, q in pairs)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_sizes_that_only_the_inputs_tell_follow_from_the_functions_body() -> None:
    @register_func("relay.ext.test_external")
    def generate(func: Any) -> PythonModule:
        return PythonModule({"ext_0": lambda x, out: out.copyfrom(x.numpy()[:, :5] + 7)})

    x, p = (relay.var(n, shape=(relay.Any(), 25)) for n in "xp")
    dense = relay.nn.dense(p, relay.const(np.ones((5, 25), "float32")))
    q = relay.var("q", shape=(relay.Any(), 25))
    composite = relay.Call(relay.Function([q], relay.nn.dense(q, relay.const(np.ones((5, 25), "float32")))).with_attr("Composite", "test.dense"), [p])
    for body in (dense, composite):
        func = relay.Function([p], body).with_attr({"Primitive": 1, "Compiler": "test_external", "global_symbol": "ext_0"})
        mod = IRModule.from_expr(relay.Function([x], relay.negative(relay.Call(func, [x]))))
        for kind in ("vm", "debug"):
            (got,) = run(kind, mod, np.ones((3, 25), "float32"))
            np.testing.assert_array_equal(got, np.full((3, 5), -8, "float32"))


# -- what is said


def build(expr: Any, target: Any = "llvm") -> Any:
    return relay.build(InferType()(IRModule.from_expr(expr)), target)


def call_add(**more: Any) -> Any:
    a, b = variables()
    return relay.Function([a, b], external(relay.add, a, b, **more))


@pytest.mark.parametrize("compile_", [build, lambda f: relay.vm.compile(IRModule.from_expr(f), "llvm"), lambda f: run("debug", f, A, B)])
def test_a_compiler_that_is_not_there_is_named(compile_: Any) -> None:
    with pytest.raises(BuildError, match=r"'ext_0' is for the external compiler 'nobody', which is not there: register relay\.ext\.nobody"):
        compile_(call_add(compiler="nobody"))


def raises(func: Any) -> None:
    raise ValueError("no such operator here")


@pytest.mark.parametrize("generate, error, said", [
    (raises, BuildError, r"'test_external' \(relay\.ext\.test_external\) failed on the function 'ext_0': ValueError: no such operator here"),
    (lambda f: 3, TypeMismatchError, r"relay\.ext\.test_external\), called for the function 'ext_0', is expected to return a runtime Module.*got int"),
    (lambda f: PythonModule({"other": len}), BuildError, r"returned a module of kind 'python' that has no function 'ext_0'"),
])
def test_a_compiler_that_fails_is_named_with_its_function(generate: Any, error: type, said: str) -> None:
    register_func("relay.ext.test_external", generate)
    with pytest.raises(error, match=said):
        build(call_add())


@needs_compiler
@pytest.mark.parametrize("kind, said", [("graph", r"node 'ext_0' \(kernel 'ext_0'\) failed with status 3: too hot"), ("vm", "ext_0 failed: too hot"),
                                        ("debug", "ext_0: too hot"), ("aot", "failed with status -1: too hot")])
def test_a_function_that_fails_says_why(kind: str, said: str) -> None:
    text = ("#include <tvm/runtime/c_runtime_api.h>\nTVM_DLL int32_t ext_0(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code) {\n"
            '    TVMAPISetLastError("too hot");\n    return 3;\n}\n')
    register_func("relay.ext.test_external", lambda func: CSourceModule(text, "c", ["ext_0"]))
    with pytest.raises(AnchorlegError, match=said):
        run(kind, call_add(), A, B)


def test_code_that_comes_from_elsewhere_is_missed_when_it_is_needed() -> None:
    register_func("relay.ext.test_external", lambda func: None)
    lib = build(call_add())
    with pytest.raises(ArtifactError, match="no function 'ext_0'.*import the module with its code"):
        lib["default"](cpu(0))
    exe = relay.vm.compile(IRModule.from_expr(call_add()), "llvm")
    with pytest.raises(ArtifactError, match="no function 'ext_0'.*import the module with its code"):
        vm.VirtualMachine(exe, cpu(0)).run(A, B)
    lib.get_lib().import_module(PythonModule({"ext_0": lambda a, b, out: out.copyfrom(a.numpy() * b.numpy())}))
    module = GraphModule(lib["default"](cpu(0)))
    module.run(a=A, b=B)
    np.testing.assert_array_equal(module.get_output(0).numpy(), A * B)


def test_functions_need_a_name_of_their_own() -> None:
    register_python()
    a, b = variables()
    nameless = relay.Function([a, b], relay.add(a, b)).with_attr({"Primitive": 1, "Compiler": "test_external"})
    x, y = variables()
    with pytest.raises(BuildError, match="'test_external' without a name: give it the attribute global_symbol"):
        build(relay.Function([x, y], relay.Call(nameless, [x, y])))
    with pytest.raises(BuildError, match="two different functions have the global_symbol 'ext_0'"):
        build(relay.Function([a, b], external(relay.subtract, external(relay.add, a, b), b)))


def test_an_exported_model_needs_code_that_can_be_written(tmp_path: Path) -> None:
    register_python()
    with pytest.raises(ArtifactError, match="module of kind 'python' with ext_0 cannot be written to a file"):
        build(call_add()).export_library(tmp_path / "model.tar")


@pytest.mark.parametrize("expr, said", [
    (lambda p, q: relay.divide(p, q), "divide is not among the operators it can do: add, subtract, multiply"),
    (lambda p, q: relay.add(relay.cast(p, "float16"), relay.cast(q, "float16")), "'cc_0': it takes tensors of known shape of the types float32"),
])
def test_the_example_compiler_says_what_it_cannot_do(expr: Any, said: str) -> None:
    a, b = variables()
    with pytest.raises(BuildError, match=said) as caught:
        build(relay.Function([a, b], external(expr, a, b, compiler="ccompiler", symbol="cc_0")))
    assert isinstance(caught.value.__cause__, UnsupportedOpError) and "failed on the functions cc_0" in str(caught.value)


def test_options_of_a_compiler_come_with_its_target() -> None:
    good, bad = (Target({"kind": "ccompiler", "header": text}) for text in ("// fine", "bogus"))
    a, b = variables()
    expr = relay.Function([a, b], external(relay.add, a, b, compiler="ccompiler", symbol="cc_0"))
    (module,) = build(expr, ["llvm", good]).get_lib().imported_modules
    assert isinstance(module, CSourceModule) and module.get_source().startswith("// fine\n")
    assert build(expr, [bad, "llvm"]).get_lib().imported_modules[0].get_source().startswith("bogus")
    with pytest.raises(TargetError, match="only targets of external compilers are given"):
        build(expr, good)
    assert build(expr, Target(good, host="llvm")).get_lib().triple


@needs_compiler
@each_executor
def test_the_example_compiler_takes_tuples(kind: str) -> None:
    p = relay.var("p", relay.TupleType([relay.TensorType((2, 3)), relay.TupleType([relay.TensorType((3,)), relay.TensorType((2, 3))])]))
    one, rest = relay.TupleGetItem(p, 0), relay.TupleGetItem(p, 1)
    body = relay.Tuple([relay.Tuple([relay.multiply(one, relay.TupleGetItem(rest, 0)), one]), relay.add(relay.TupleGetItem(rest, 1), relay.const(np.float32(2)))])
    func = relay.Function([p], body).with_attr({"Primitive": 1, "Compiler": "ccompiler", "global_symbol": "cc_0"})
    a, b = variables()
    c = relay.var("c", shape=(3,))
    result = relay.Call(func, [relay.Tuple([a, relay.Tuple([c, b])])])
    pair = relay.TupleGetItem(result, 0)
    got = run(kind, relay.Function([a, b, c], relay.Tuple([relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1), relay.TupleGetItem(result, 1)])), A, B, B[0])
    for value, want in zip(got, (A * B[0], A, B + 2), strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6)


@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint32", "float64"])
def test_the_example_compilers_arithmetic_is_that_of_the_operators(dtype: str) -> None:
    rng = np.random.default_rng(3)
    if dtype.startswith("float"):
        values = [rng.standard_normal(s) for s in ((2, 1, 3), (4, 1))]
    else:
        info = np.iinfo(dtype)
        values = [rng.integers(info.min, info.max, s, dtype, endpoint=True) for s in ((2, 1, 3), (4, 1))]
    p, q = (relay.var(n, shape=v.shape, dtype=dtype) for n, v in zip("pq", values))
    func = relay.Function([p, q], relay.Tuple([relay.subtract(relay.multiply(p, q), relay.add(q, q)), q]))
    func = func.with_attr({"Primitive": 1, "Compiler": "ccompiler", "global_symbol": "cc_0"})
    x, y = (relay.var(n, shape=v.shape, dtype=dtype) for n, v in zip("xy", values))
    mod = IRModule.from_expr(relay.Function([x, y], relay.Call(func, [x, y])))
    with np.errstate(over="ignore"):
        wanted = [values[0] * values[1] - (values[1] + values[1]), values[1]]
    for got, want in zip(run("graph", mod, *values), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_hook_that_fails_is_named_with_its_functions() -> None:
    a, b = variables()
    mod = InferType()(IRModule.from_expr(relay.Function([a, b], external(relay.add, a, b, compiler=target_hooks.NAME, symbol="hooked", tir_to_runtime=1))))
    before = target_hooks.KIND.get_attr("TIRToRuntime")
    try:
        for hook, error, said in ((raises, BuildError, "failed on hooked: TypeError: raises"), (lambda m, t: 3, TypeMismatchError, "called for hooked, .*got int")):
            target_hooks.KIND.set_attr("TIRToRuntime", hook)
            with pytest.raises(error, match=f"TIRToRuntime of the target kind 'example_target_hook'.*{said}"):
                relay.build(mod, "llvm")
    finally:
        target_hooks.KIND.set_attr("TIRToRuntime", before)


def test_no_tuning_tasks_are_made_of_functions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[str] = []
    monkeypatch.setattr(TECompiler, "lower", lambda self, func, target, **more: lowered.append(fused_name(func)))
    a, b = variables()
    lower_for_tasks(relay.Function([a, b], relay.exp(external(relay.multiply, a, b))), "llvm", None)
    assert lowered == ["fused_exp"]


# -- constants


def with_constants() -> Any:
    p = relay.var("p", shape=(2,))
    body = relay.add(relay.multiply(p, relay.const(np.float32([1, 2]))), relay.const(np.float32([3, 4])))
    return InferType()(IRModule.from_expr(relay.Function([p], body)))["main"].with_attr("Compiler", "test_external")


def test_constants_are_numbered_in_the_order_of_evaluation() -> None:
    found = external_constants(with_constants(), "ext_0")
    assert {k: v.numpy().tolist() for k, v in found.items()} == {"ext_0_const_0": [1, 2], "ext_0_const_1": [3, 4]}


def test_a_compiler_may_name_its_constants() -> None:
    register_func("relay.ext.test_external.constant_updater", lambda func, symbol: {f"test_external_{symbol}": np.float32([5])})
    assert external_constants(with_constants(), "ext_0")["test_external_ext_0"].tolist() == [5]
    register_func("relay.ext.test_external.constant_updater", lambda func, symbol: {"mine": np.float32([5])}, override=True)
    with pytest.raises(BuildError, match="gave the constants mine: external constant names must start with the compiler's name, 'test_external'"):
        external_constants(with_constants(), "ext_0")


@each_executor
def test_a_module_is_given_the_constants_it_asks_for(kind: str) -> None:
    @register_func("relay.ext.test_external")
    def generate(func: Any) -> PythonModule:
        kept: list[np.ndarray] = []
        return PythonModule({"get_symbol": lambda: "ext_0", "get_const_vars": lambda: ["ext_0_const_0"], "ext_0": lambda x, out: out.copyfrom(x.numpy() * kept[0]),
                             "__init_ext_0": lambda tensors: kept.extend(t.numpy() for t in tensors)})

    a, _ = variables()
    (got,) = run(kind, relay.Function([a], external(lambda p: relay.add(p, relay.const(B)), a)), A)
    np.testing.assert_array_equal(got, A * B)


def test_where_there_is_nothing_external_the_module_comes_back() -> None:
    a, b = variables()
    mod = InferType()(IRModule.from_expr(relay.Function([a, b], relay.add(a, b))))
    same, code = compile_external(mod)
    assert same is mod and not code and code.attach(CompiledModule([], {}), None).imported_modules == []


# -- whole programs


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 7, 8, 46])
@pytest.mark.parametrize("merge", [True, False])
def test_random_programs_cut_for_the_example_compiler(seed: int, merge: bool) -> None:
    def only_tensors(call: Any) -> bool:
        return all(isinstance(a.checked_type, relay.TensorType) for a in call.args)

    for name in ("add", "subtract", "multiply"):
        register_op_attr(name, "target.ccompiler", only_tensors)
    mod = random_graph(seed, 20)
    steps = [AnnotateTarget("ccompiler", seed % 4 == 0), *([MergeCompilerRegions()] if merge else []), PartitionGraph(bind_constants=seed != 7)]
    cut = Sequential(steps)(mod)
    assert sum(f.get_attr("Compiler") is not None for f in cut.functions.values())
    args = inputs(mod, seed)
    for kind, target in (("graph", "llvm"), ("vm", "llvm"), ("debug", "llvm"), ("aot", "llvm"), ("aot", "c")):
        for got, want in zip(run(kind, cut, *args, target=target), values(mod, *args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
