"""A C program that runs compiled models as an application would: with its own pools, sections and code around the call.

The program has a ``main`` with the runner's prologue, one call for each model, and the runner's epilogue.  It writes every result to a
file, so that differences are told where they can be told well.
"""
from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from ..ir.memory_pools import ConstantPoolInfo
from ..relay.backend.aot.c_module import CLibraryModule
from ..runtime.c_compiler import c_command
from ..support.errors import ArgumentError, BuildError
from ..support.names import c_identifier
from ..target.codegen.c.source import constant_array

SUCCESS, FAILURE = "AOT_TEST_SUCCESS", "AOT_TEST_FAILURE"
_HELPERS = """
static int save(const char* name, const void* data, size_t size) {
    FILE* const file = fopen(name, "wb");
    const int done = file != NULL && fwrite(data, 1, size, file) == size;
    if (file != NULL) fclose(file);
    return done ? 0 : -1;
}
"""


class Application:
    """The program for some compiled models.

    ``models`` are (name, factory, inputs) triples; ``prologue`` and ``epilogue`` are C statements inside ``main``, ``includes`` names of
    headers, ``linkage`` a section with its alignment for the data.
    """

    def __init__(self, models: Sequence[tuple[str, Any, Mapping[str, np.ndarray]]], prologue: str = "", epilogue: str = "",
                 includes: Sequence[str] = (), linkage: Any = None, workspace_io: bool = False) -> None:
        self.models, self.prologue, self.epilogue = list(models), prologue, epilogue
        self.includes, self.linkage, self.workspace_io = list(includes), linkage, workspace_io
        for name, factory, _ in self.models:
            if not isinstance(factory.lib, CLibraryModule) or not factory.built.request.options.is_c_interface:
                raise ArgumentError(f"{name}: a program with code of its own needs models built for the target c with interface-api c")

    def text(self) -> str:
        """``test.c``"""
        headers = ["<math.h>", "<stdint.h>", "<stdio.h>", "<stdlib.h>", "<string.h>", *(f'"{f.lib.header_name}"' for _, f, _ in self.models),
                   *(f'"{i}"' for i in self.includes)]
        lines = [f"#include {h}" for h in headers] + [_HELPERS]
        for _, factory, inputs in self.models:
            lines += self._data(factory, inputs)
        lines += ["int main(void) {", self.prologue]
        for _, factory, _ in self.models:
            lines += [f"    {line}" for line in self._call(factory)]
        return "\n".join([*lines, self.epilogue, f'    printf("{SUCCESS}\\n");', "    return 0;", "}", ""])

    def _attribute(self) -> str:
        return f'__attribute__((section("{self.linkage.section}"), aligned({self.linkage.alignment}))) ' if self.linkage is not None else ""

    def _data(self, factory: Any, inputs: Mapping[str, np.ndarray]) -> list[str]:
        prefix, lines = factory.built.request.names.prefix, []
        for t in factory.facts.inputs:
            data = np.ascontiguousarray(inputs[t.name] if t.name in inputs else inputs[t.symbol])
            lines.append(self._attribute() + constant_array(f"{prefix}_input_data_{t.symbol}", data.astype(np.uint8) if data.dtype == bool else data).replace("const ", "", 1))
        for t in factory.facts.outputs:
            size = max(1, int(np.prod(t.shape, dtype=np.int64)) * np.dtype(t.dtype).itemsize)
            lines.append(f"{self._attribute()}static uint8_t {prefix}_output_data_{t.symbol}[{size}]{'' if self.linkage else ' __attribute__((aligned(16)))'};")
        return lines

    def _call(self, factory: Any) -> list[str]:
        prefix, lines = factory.built.request.names.prefix, []
        if not self.workspace_io:
            lines += self._structures(factory, prefix)
        arguments = ", ".join(f"&{prefix}_{s}" for s in factory.facts.structures)
        lines += [f"if ({prefix}_run({arguments}) != 0) {{", f'    printf("{FAILURE}\\n");', "    return 1;", "}"]
        return lines + [f'if (save("{prefix}_{t.symbol}.bin", {prefix}_outputs.{t.symbol}, {factory.built.request.names.macro(t.symbol + "_size")}) != 0) return 2;'
                        for t in factory.facts.outputs]

    def _structures(self, factory: Any, prefix: str) -> list[str]:
        pools = [a.pool_info for a in factory.executor_codegen_metadata.pool_inputs.values() if not a.pool_info.is_internal]
        names = [c_identifier(p.pool_name) for p in pools]
        rows = {"workspace_pools": [f".{n} = {'(void*)&' if isinstance(p, ConstantPoolInfo) else ''}{n}" for n, p in zip(names, pools)],
                "inputs": [f".{t.symbol} = {prefix}_input_data_{t.symbol}" for t in factory.facts.inputs],
                "outputs": [f".{t.symbol} = {prefix}_output_data_{t.symbol}" for t in factory.facts.outputs]}
        return [f"struct {prefix}_{kind} {prefix}_{kind} = {{{', '.join(row)}}};" for kind, row in rows.items() if row]

    def run(self, folder: "str | Path", defines: Sequence[str] = ()) -> list[list[np.ndarray]]:
        """Builds and runs the program in a folder; the results of each model.  RuntimeError when it fails."""
        self.write(folder)
        path = Path(folder)
        sources = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.suffix in (".c", ".S"))
        folders = sorted({f"-I{Path(s).parent}" for s in sources if "/" in s})
        line = [*c_command(), "-std=gnu99", "-O1", *defines, "-I.", *folders, "-o", "test", *sources, "-lm"]
        done = subprocess.run(line, cwd=path, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError(f"the C compiler failed: {' '.join(line)}\n{done.stderr[-3000:]}")
        done = subprocess.run(["./test"], cwd=path, capture_output=True, text=True)
        if SUCCESS not in done.stdout:
            raise RuntimeError(f"the program ended with status {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
        return [[self._result(path, f, t) for t in f.facts.outputs] for _, f, _ in self.models]

    def write(self, folder: "str | Path") -> None:
        """Puts all files into a folder: ``test.c``, and the code of each model in a folder of its own."""
        path = Path(folder)
        for _, factory, _ in self.models:
            own = path / factory.built.request.names.prefix
            own.mkdir(parents=True, exist_ok=True)
            for name, content in factory.lib.all_files().items():
                (own / name).write_bytes(content.encode() if isinstance(content, str) else bytes(content))
        (path / "test.c").write_text(self.text())

    def _result(self, path: Path, factory: Any, t: Any) -> np.ndarray:
        data = (path / f"{factory.built.request.names.prefix}_{t.symbol}.bin").read_bytes()
        return np.frombuffer(data, np.dtype(t.dtype)).reshape(t.shape)
