"""Networks compiled to C run on emulated small machines, and compute what this machine computes."""
from __future__ import annotations

import functools
import shutil
import subprocess

import numpy as np
import pytest

from anchorleg.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from anchorleg.ir.transform import PassContext
from anchorleg.micro import BOARDS, create_project

from .models import NETWORKS, build_c


@functools.lru_cache(maxsize=None)
def built(name):
    return build_c(NETWORKS[name](), mod_name=name)


LIMITS = {"wake_word": 245_000, "mlp": 210_000}  # instructions on a Cortex-M3: 61,152 and 2,016 products, and what comes with them


def make_project(name, tmp_path, board):
    project = create_project(built(name), tmp_path, board)
    missing = project.missing_tools()
    if missing:
        pytest.skip(f"needs {', '.join(missing)} (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm qemu-system-misc "
                    "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf)")
    return project


@pytest.mark.parametrize("board", [b for b in BOARDS if b != "host"])
@pytest.mark.parametrize("name", NETWORKS)
def test_emulated_boards_agree_with_the_host(name, board, tmp_path):
    project = make_project(name, tmp_path, board)
    assert project.make() == "", "the cross compiler warned"
    printed = project.make("run", timeout=120)
    assert printed.rstrip().endswith("PASS")
    if board == "mps2-an385":
        assert 0 < project.instructions(printed) < LIMITS.get(name, 10_000_000)
    results = project.results(printed)
    assert len(results) == len(project.expected)
    for got, expected in zip(results, project.expected):
        if expected.dtype.kind in "iu":
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("board", ["mps2-an385", "riscv32"])
def test_inputs_and_results_in_the_workspace_on_a_board(board, tmp_path):
    """The input in the small pool, the rest where there is room; the program copies to where ``map_inputs`` points."""
    pools = WorkspaceMemoryPools([WorkspacePoolInfo("tcm", [], PoolInfoProperties(size_hint_bytes=4096)), WorkspacePoolInfo("sram", [])])
    with PassContext(opt_level=3, config={"tir.usmp.use_workspace_io": True}):
        factory = build_c(NETWORKS["cnn"](), mod_name="cnn", workspace_memory_pools=pools)
    project = create_project(factory, tmp_path, board)
    if project.missing_tools():
        pytest.skip(f"needs {', '.join(project.missing_tools())}")
    assert project.make() == "", "the cross compiler warned"
    assert project.make("run", timeout=120).rstrip().endswith("PASS")


@pytest.mark.parametrize("name", NETWORKS)
def test_sources_are_clean_under_sanitizers(name, tmp_path):
    make_project(name, tmp_path, "host")
    done = subprocess.run(["make", "-s", "model.elf", "EXTRA=-fsanitize=address,undefined -fno-sanitize-recover=all -g"], cwd=tmp_path,
                          capture_output=True, text=True)
    if done.returncode != 0 and "sanitize" in done.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(["./model.elf"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.rstrip().endswith("PASS"), done.stderr[-2000:]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["cnn", "wake_word"])
def test_sources_compile_without_a_warning(name, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    files = built(name).lib.all_files()
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    for source in ("lib0.c", "lib1.c"):
        done = subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-c", source], cwd=tmp_path,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]


def test_a_board_may_be_too_small(tmp_path):
    project = create_project(built("mlp"), tmp_path, "mps2-an385")
    assert project.shortage() == "" and project.constants == 32 * 4 + 8296 and project.written == built("mlp").plan.total + 40
    tiny = project._replace(board=project.board._replace(code=8000, data=100))
    assert tiny.shortage() == ("constants and the test input take 8424 bytes, and the board has 8000 for code and constants; "
                               f"working memory and results take {project.written} bytes, and the board has 100 for data")


def test_a_wrong_result_is_noticed(tmp_path):
    project = make_project("mlp", tmp_path, "host")
    header = (tmp_path / "test_data.h").read_text()
    start = header.index("expected_0[")
    brace = header.index("{", start)
    (tmp_path / "test_data.h").write_text(header[: brace + 1] + "\n    0.75f," + header[header.index(",", brace) + 1:])
    with pytest.raises(Exception, match="FAIL"):
        project.make("run")


def test_the_wake_word_network_is_small():
    factory = built("wake_word")
    weights = sum(c.nbytes for c in factory.built.program.constants)
    assert weights < 200_000
    assert factory.plan.total <= factory.plan.lower_bound * 1.05


@pytest.mark.parametrize("name", NETWORKS)
def test_c_agrees_with_llvm_and_with_the_definition(name):
    """C code, LLVM's code, and for the integer network the operators' numpy rules."""
    from anchorleg import relay
    from anchorleg.contrib.aot_executor import AotModule
    from anchorleg.micro.project import test_inputs as inputs_of
    from anchorleg.relay.backend.numpy_interpreter import evaluate
    from anchorleg.relay.transform import InferType
    from anchorleg.runtime import cpu

    factory, mod = built(name), InferType()(NETWORKS[name]())
    values = inputs_of(factory, {})
    module = AotModule(factory["default"](cpu(0)))
    module.run(**values)
    ours = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    theirs = relay.create_executor("graph", mod, target="llvm").evaluate()(*values.values())
    rows = [t.numpy() for t in theirs] if isinstance(theirs, list) else [theirs.numpy()]
    defined = evaluate(mod["main"], list(values.values())) if name == "wake_word" else rows
    for got, other, rule in zip(ours, rows, defined):
        exact = got.dtype.kind in "iu"
        np.testing.assert_allclose(got, other, rtol=0, atol=0 if exact else 1e-5)
        np.testing.assert_allclose(got, np.asarray(rule), rtol=0, atol=0 if exact else 1e-5)


LLVM_TARGETS = {"mps2-an385": "llvm -mtriple=thumbv7m-none-eabi -mcpu=cortex-m3", "riscv32": "llvm -mtriple=riscv32-unknown-elf -mcpu=generic-rv32 -mattr=+m,+a,+c"}


@pytest.mark.parametrize("board", LLVM_TARGETS)
@pytest.mark.parametrize("name", ["mlp", "wake_word"])
def test_objects_from_llvm_run_on_boards(name, board, tmp_path):
    """Object files in place of the C sources: the same interface, and nothing but what a C compiler's own library has."""
    from anchorleg import relay
    from anchorleg.relay.backend import Executor, Runtime

    project = make_project(name, tmp_path, board)
    made = relay.build(NETWORKS[name](), target=LLVM_TARGETS[board], executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}),
                       runtime=Runtime("crt"), mod_name=name)
    for number, code in enumerate(made.lib.objects):
        (tmp_path / f"kernel{number}.o").write_bytes(code)
    (tmp_path / f"tvmgen_{name}.h").write_text(made.interface_header)
    objects = " ".join(f"kernel{i}.o" for i in range(len(made.lib.objects)))
    (tmp_path / "Makefile").write_text((tmp_path / "Makefile").read_text().replace("lib0.c lib1.c", objects))
    printed = project.make("run")
    assert printed.rstrip().endswith("PASS")
    for got, expected in zip(project.results(printed), project.expected, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 if expected.dtype.kind == "f" else 0)
    names = subprocess.run([project.board.compiler.replace("gcc", "nm"), "model.elf"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert "snprintf" not in names and "unwind" not in names
