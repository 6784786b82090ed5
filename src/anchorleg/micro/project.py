"""A project that builds a model for a small machine and runs it: Makefile, linker script, start-up code, a main with a test.

The test input and the results expected (those of this machine) are in the project; the program prints the results bit by bit,
compares, and says PASS or FAIL.  ``make run`` builds and runs it, on an emulator for the boards that are emulated.
"""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Mapping, NamedTuple

import numpy as np

from ..relay.backend.aot.c_module import CLibraryModule
from ..relay.backend.aot.factory import AOTExecutorFactoryModule
from ..runtime.aot_executor import AotModule
from ..runtime.device import cpu
from ..support.errors import ArgumentError, BuildError
from ..target.codegen.c.source import constant_array

TEXT_LIMIT = 1 << 20
_TEMPLATES = Path(__file__).parent / "templates"
FLAGS = "-std=c99 -O2 -Wall -Wextra -Wpedantic -Wconversion"


class Board(NamedTuple):
    """A machine: its compiler and flags, further files of the project, how to run, what that needs and the Debian packages that have it.

    ``code`` and ``data`` are its bytes for code and constants, and for what is written (0: as much as one likes).
    """

    title: str
    compiler: str
    flags: str
    link: str
    files: tuple[str, ...]
    run: str
    tools: tuple[str, ...]
    packages: str = ""
    code: int = 0
    data: int = 0


_ARM_PACKAGES, _RISCV_PACKAGES = ("gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
                                  "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc")
_ARM_LINK = "-nostartfiles --specs=nano.specs --specs=nosys.specs -T mps2.ld -Wl,--gc-sections"
_QEMU_ARM = "qemu-system-arm -machine {} -icount shift=0 -nographic -monitor none -serial none -semihosting-config enable=on,target=native -kernel model.elf"
BOARDS: dict[str, Board] = {
    "host": Board("this machine", "cc", "", "", ("console_host.c",), "./model.elf", ("cc",)),
    "mps2-an385": Board("Arm Cortex-M3 (MPS2 AN385, emulated)", "arm-none-eabi-gcc", "-mcpu=cortex-m3 -mthumb -ffunction-sections -fdata-sections",
                        _ARM_LINK, ("console_arm.c", "mps2.ld"), _QEMU_ARM.format("mps2-an385"), ("arm-none-eabi-gcc", "qemu-system-arm"),
                        _ARM_PACKAGES, 4 << 20, 4 << 20),
    "mps2-an500": Board("Arm Cortex-M7 with floating point (MPS2 AN500, emulated)", "arm-none-eabi-gcc",
                        "-mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16 -ffunction-sections -fdata-sections", _ARM_LINK, ("console_arm.c", "mps2.ld"),
                        _QEMU_ARM.format("mps2-an500"), ("arm-none-eabi-gcc", "qemu-system-arm"), _ARM_PACKAGES, 4 << 20, 4 << 20),
    "riscv32": Board("RISC-V RV32IMAC (QEMU virt, emulated)", "riscv64-unknown-elf-gcc",
                     "-march=rv32imac -mabi=ilp32 -mcmodel=medany -ffunction-sections -fdata-sections --specs=picolibc.specs",
                     "-nostartfiles -T riscv.ld -Wl,--gc-sections", ("console_riscv.c", "start_riscv.S", "riscv.ld"),
                     "qemu-system-riscv32 -machine virt -icount shift=0 -m 64M -bios none -nographic -monitor none -serial stdio -kernel model.elf".replace("-nographic", "-display none"),
                     ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"), _RISCV_PACKAGES, 32 << 20, 32 << 20),
}


class Project(NamedTuple):
    """A project on disk; ``constants`` and ``written`` are the bytes of what it only reads (without its code) and of what it writes."""

    folder: Path
    board: Board
    expected: list[Any]
    constants: int = 0
    written: int = 0

    def shortage(self) -> str:
        """What the board has too little of, in words; empty when, as far as constants and data go, it has enough."""
        rows = ((self.constants, self.board.code, "constants and the test input", "for code and constants"),
                (self.written, self.board.data, "working memory and results", "for data"))
        return "; ".join(f"{what} take {need} bytes, and the board has {has} {where}" for need, has, what, where in rows if has and need > has)

    def missing_tools(self) -> list[str]:
        """Programs that building or running needs and this machine has not."""
        return [t for t in self.board.tools if shutil.which(t) is None]

    def make(self, goal: str = "model.elf", timeout: float = 600) -> str:
        """Runs ``make``; what it printed.  BuildError when it fails."""
        done = subprocess.run(["make", "-s", goal], cwd=self.folder, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise BuildError(f"make {goal} failed in {self.folder}:\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout + done.stderr

    def instructions(self, printed: str) -> int | None:
        """How many instructions the model took in a run on an emulator (the Arm boards count by forties); None on this machine."""
        counts = [int(line.split()[1]) for line in printed.splitlines() if line.startswith("instructions ")]
        return counts[0] if counts else None

    def results(self, printed: str) -> list[np.ndarray]:
        """The results in what a run printed, with the bits the machine computed."""
        rows = [line.split()[1:] for line in printed.splitlines() if line.startswith("output")]
        found = []
        for expected, row in zip(self.expected, rows):
            raw = bytes.fromhex("".join(row))
            found.append(np.frombuffer(raw, expected.dtype).reshape(expected.shape))
        return found


def create_project(factory: AOTExecutorFactoryModule, folder: "str | Path", board: str = "mps2-an385", inputs: Mapping[str, Any] | None = None,
                   tolerance: float = 1e-5) -> Project:
    """Writes a project for a model built for the target ``c`` with ``interface-api`` ``c``.

    ``inputs``: the test input by name (random by default).  Integer results have to be equal, floats within ``tolerance`` relative to
    the larger of 1 and the value.  Raises ArgumentError for a board that is not known or a model built otherwise.
    """
    if board not in BOARDS:
        raise ArgumentError(f"board {board!r} is not known; available: {', '.join(BOARDS)}")
    if not isinstance(factory.lib, CLibraryModule) or not factory.built.request.options.is_c_interface:
        raise ArgumentError('a project needs a model built with target="c", Runtime("crt") and '
                            'Executor("aot", {"interface-api": "c", "unpacked-api": True})')
    values = test_inputs(factory, inputs or {})
    module = AotModule(factory["default"](cpu(0)))
    module.run(**values)
    expected = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    chosen, path = BOARDS[board], Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    files: dict[str, "str | bytes"] = {**factory.lib.all_files(), **_test_files(factory, values, expected, tolerance)}
    for name in ("main.c", "console.h", *chosen.files):
        files[name] = (_TEMPLATES / name).read_text().replace("@prefix@", factory.built.request.names.prefix)
    files["Makefile"] = _makefile(chosen, files)
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content.encode() if isinstance(content, str) else bytes(content))
    inner = sum(v.nbytes for v in values.values()) + sum(c.nbytes for c in factory.built.program.constants)
    return Project(path, chosen, expected, inner, factory.plan.total + sum(v.nbytes for v in expected))


def test_inputs(factory: AOTExecutorFactoryModule, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A value for every input: what was given, else random numbers, the same ones every time."""
    random, values = np.random.default_rng(0), {}
    for tensor in factory.facts.inputs:
        dtype = np.dtype(tensor.dtype)
        if tensor.name in given:
            values[tensor.name] = np.asarray(given[tensor.name], dtype)
        elif dtype.kind == "f":
            values[tensor.name] = random.random(tensor.shape).astype(dtype)
        else:
            low, high = (0, 2) if dtype.kind == "b" else (max(-128, np.iinfo(dtype).min), min(127, np.iinfo(dtype).max))
            values[tensor.name] = random.integers(low, high, tensor.shape).astype(dtype)
    return values


def _test_files(factory: AOTExecutorFactoryModule, values: Mapping[str, np.ndarray], expected: list[Any], tolerance: float) -> dict[str, str]:
    """``test_data.h``: inputs, expected results and a table of them."""
    arrays, rows = [], []
    for tensor in factory.facts.inputs:
        data = np.ascontiguousarray(values[tensor.name])
        arrays.append(constant_array(f"input_{tensor.symbol}", data.astype(np.uint8) if data.dtype == np.bool_ else data))
    for i, (tensor, value) in enumerate(zip(factory.facts.outputs, expected)):
        data = value.astype(np.uint8) if value.dtype == np.bool_ else value
        arrays.append(constant_array(f"expected_{i}", data))
        kind = {"f": "f"}.get(data.dtype.kind, "i")
        arrays.append(f"static uint8_t output_{i}[{max(1, data.nbytes)}] __attribute__((aligned(16)));\n")
        rows.append(f"    {{output_{i}, expected_{i}, {data.size}, {data.dtype.itemsize}, '{kind}'}},")
    prefix = factory.built.request.names.prefix
    fields = [(t.symbol, f"(void*)(uintptr_t)input_{t.symbol}") for t in factory.facts.inputs]
    structures = [f"static struct {prefix}_inputs inputs = {{{', '.join(v for _, v in fields)}}};"] if fields else []
    if factory.facts.maps is None:
        structures.append(f"static struct {prefix}_outputs outputs = {{{', '.join(f'output_{i}' for i in range(len(expected)))}}};")
    structures += _pool_lines(factory, prefix)
    text = "\n".join([*arrays, *structures, "", "static const struct result results[] = {", *rows, "};", f"#define RESULTS {len(expected)}",
                      f"#define TOLERANCE {tolerance!r}", *_run_lines(factory, prefix), ""])
    return {"test_data.h": text}


def _run_lines(factory: AOTExecutorFactoryModule, prefix: str) -> list[str]:
    """How the model is run: inputs and results that lie in its workspace are copied there and back."""
    call = f"{prefix}_run({', '.join(f'&{s}' for s in factory.facts.structures)})"
    if factory.facts.maps is None:
        return [f"#define RUN() {call}"]
    pools = "&workspace_pools" if "workspace_pools" in factory.facts.structures else ""
    lines = ["static int32_t run_model(void) {"]
    if factory.facts.inputs:
        lines.append(f"    const struct {prefix}_inputs placed = {prefix}_map_inputs({pools});")
    lines += [f"    memcpy(placed.{t.symbol}, inputs.{t.symbol}, sizeof input_{t.symbol});" for t in factory.facts.inputs]
    lines += [f"    const int32_t status = {call};", f"    const struct {prefix}_outputs made = {prefix}_map_outputs({pools});"]
    lines += [f"    memcpy(output_{i}, made.{t.symbol}, sizeof output_{i});" for i, t in enumerate(factory.facts.outputs)]
    return [*lines, "    return status;", "}", "#define RUN() run_model()"]


def _pool_lines(factory: AOTExecutorFactoryModule, prefix: str) -> list[str]:
    if "params" in factory.facts.structures:
        raise ArgumentError("a project needs linked parameters: build without link-params = False")
    if "workspace_pools" not in factory.facts.structures:
        return []
    lines = [f"static uint8_t pool_{name}[{size}] __attribute__((aligned(64)));" for name, size in factory.facts.pools]
    for pool in factory.built.constant_pools:
        macro = f"{factory.built.request.names.upper}_{pool.name.upper()}_CONSTANT_POOL"
        lines = [line if f"pool_{pool.name}[" not in line
                 else f"static uint8_t pool_{pool.name}[{macro}_SIZE] __attribute__((aligned(64))) = {{{macro}_DATA}};" for line in lines]
    return [*lines, f"static struct {prefix}_workspace_pools workspace_pools = {{{', '.join(f'pool_{n}' for n, _ in factory.facts.pools)}}};"]


def _makefile(board: Board, files: Mapping[str, Any]) -> str:
    sources = " ".join(sorted(n for n in files if n.endswith((".c", ".S"))))
    others = " ".join(sorted(n for n in files if n.endswith((".h", ".ld", ".bin"))))
    return (f"# {board.title}\nCC = {board.compiler}\nCFLAGS = {FLAGS}\nEXTRA =\nBOARD = {board.flags}\nLINK = {board.link}\n\n"
            f"model.elf: {sources} {others}\n\t$(CC) $(CFLAGS) -I. $(EXTRA) $(BOARD) -o $@ {sources} $(LINK) -lm\n\n"
            f"run: model.elf\n\t{board.run}\n\nsize: model.elf\n\t$(CC:gcc=size) model.elf\n\nclean:\n\trm -f model.elf\n\n.PHONY: run size clean\n")
