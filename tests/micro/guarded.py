"""Generated C run under guard: every intermediate buffer is memory of its own, of its exact size, filled with NaNs beforehand.

With one block of working memory an access beyond a buffer's end meets another buffer, and nothing notices.  Here the planned addresses are
replaced by separate allocations, so that AddressSanitizer sees such an access, and a value that is read before it is written is not a zero.
"""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from anchorleg.micro.project import test_inputs as inputs_of
from anchorleg.relay.backend.aot.c_source import CWriter
from anchorleg.relay.backend.memory import MemoryLayout
from anchorleg.relay.backend.memory.buffers import PoolAllocation
from anchorleg.relay.backend.memory.pools import PoolUse
from anchorleg.target.codegen.c import emit_c_kernel

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wdouble-promotion", "-Wshadow", "-Wvla", "-Wcast-align")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
_DRIVER = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "{prefix}.h"

static void* block(size_t size) {{
    void* const memory = malloc(size);
    if (memory == NULL) exit(3);
    memset(memory, 0xFF, size);
    return memory;
}}

static void* input(const char* name, size_t size) {{
    void* const memory = block(size);
    FILE* const file = fopen(name, "rb");
    if (file == NULL || fread(memory, 1, size, file) != size) exit(4);
    fclose(file);
    return memory;
}}

static void output(const char* name, void* memory, size_t size) {{
    FILE* const file = fopen(name, "wb");
    if (file == NULL || fwrite(memory, 1, size, file) != size) exit(5);
    fclose(file);
    free(memory);
}}

int main(void) {{
{body}    return 0;
}}
"""


def apart(factory: Any) -> CWriter:
    """The writer of a factory's sources with every buffer in a pool of its own, which the caller hands over."""
    built = factory.built
    names = [f"buffer_{i}" for i in range(len(built.program.buffers))]
    uses = [PoolUse(n, None, b.size) for n, b in zip(names, built.program.buffers)]
    layout = MemoryLayout(built.program.buffers, [PoolAllocation(n, 0) for n in names], uses, built.layout.lower_bound)
    in_place = {s.kernel for s in built.program.steps if getattr(s, "in_place", False)}
    kernels = [emit_c_kernel(f, name, "", name in in_place) for name, f in built.lowered.items()]
    return CWriter(built.request.names, built.program, layout, kernels, built.request.options, names)


def _driver(factory: Any, writer: CWriter) -> str:
    prefix, upper, lines = writer.names.prefix, writer.names.upper, []
    program = factory.built.program
    for kind, what, members, _ in writer.structures():
        values = {"inputs": [f'input("in_{t.symbol}", {upper}_{t.symbol.upper()}_SIZE)' for t in program.inputs],
                  "outputs": [f"block({upper}_{t.symbol.upper()}_SIZE)" for t in program.outputs],
                  "workspace_pools": [f"block({b.size})" for b in program.buffers]}[kind]
        lines.append(f"struct {prefix}_{kind} {kind};")
        lines += [f"{kind}.{member} = {value};" for member, value in zip(members, values)]
    lines.append(f"if ({prefix}_run({', '.join('&' + s[0] for s in writer.structures())}) != 0) return 2;")
    lines += [f'output("out_{t.symbol}", outputs.{t.symbol}, {upper}_{t.symbol.upper()}_SIZE);' for t in program.outputs]
    for kind, _, members, _ in writer.structures():
        lines += [f"free({kind}.{member});" for member in members if kind != "outputs"]
    return _DRIVER.format(prefix=prefix, body="".join(f"    {line}\n" for line in lines))


def write(folder: Path, files: Mapping[str, "str | bytes"]) -> None:
    """Puts files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else bytes(content))


def run_guarded(factory: Any, folder: Path, values: Mapping[str, Any] | None = None, compiler: str = "gcc",
                flags: Sequence[str] = ("-O1", *SANITIZERS)) -> list[np.ndarray]:
    """The results of a model's C code under guard; AssertionError with what the compiler or a sanitizer said."""
    writer = apart(factory)
    sources = writer.sources()
    write(folder, {f"{writer.names.prefix}.h": sources.header, **sources.files, **sources.binaries, "driver.c": _driver(factory, writer)})
    for tensor in factory.facts.inputs:
        (folder / f"in_{tensor.symbol}").write_bytes(np.ascontiguousarray(inputs_of(factory, values or {})[tensor.name]).tobytes())
    names = [n for n in [*sources.files, "driver.c"] if n.endswith((".c", ".S"))]
    done = subprocess.run([compiler, "-std=c99", *flags, *WARNINGS, "-o", "model", *names, "-lm"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:4000]
    done = subprocess.run(["./model"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[:4000]}"
    return [np.frombuffer((folder / f"out_{t.symbol}").read_bytes(), t.dtype).reshape(t.shape) for t in factory.facts.outputs]


def warnings_of(files: Mapping[str, "str | bytes"], folder: Path, compiler: str = "gcc", flags: Sequence[str] = ("-O2",)) -> str:
    """What a compiler warns of in a model's C files (empty: nothing)."""
    write(folder, files)
    said = ""
    for name in files:
        if name.endswith(".c"):
            done = subprocess.run([compiler, "-std=c99", *flags, *WARNINGS, "-c", "-o", "/dev/null", name], cwd=folder, capture_output=True, text=True)
            said += done.stderr
    return said
