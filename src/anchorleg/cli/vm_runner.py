"""Models on the virtual machine, with the methods that commands use of the graph executor's module."""
from __future__ import annotations

from typing import Any, Mapping

from ..support.errors import UnsupportedOpError

UNKNOWN_SIZE = 16  # what random inputs have where a size is not known


def why_vm(mod: Any, unknown: list[str]) -> str:
    """Why a model needs the virtual machine; "" when it does not."""
    if unknown:
        return f"dimensions of {', '.join(unknown)} are not known before run time"
    from ..relay.analysis.variables import exprs
    from ..relay.expr import If
    from ..relay.function import Function

    functions = [f for f in mod.functions.values() if isinstance(f, Function)]
    if any(isinstance(n, If) for f in functions for n in exprs(f)):
        return "it has branches or loops that its inputs decide"
    from ..relay.transform.fuse_ops import is_static

    for f in functions:
        for n in exprs(f):
            if n._checked_type is not None and not is_static(n._checked_type):
                return "sizes inside it depend on the values of its inputs"
    return ""


def is_executable(compiled: Any) -> bool:
    """Whether something compiled runs on the virtual machine."""
    return getattr(compiled, "type_key", "") == "VMExecutable"


class VmRunner:
    """An executable's ``main``: set inputs, run, get outputs."""

    def __init__(self, executable: Any) -> None:
        from ..runtime.device import cpu
        from ..runtime.vm import VirtualMachine

        self.executable = executable
        self.machine = VirtualMachine(executable, cpu(0))
        self.values: dict[str, Any] = {}

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes (16 where a size is not known) and dtypes of the inputs."""
        names, specs = self.executable.get_function_params("main"), self.executable.param_types["main"]
        wrong = [n for n, s in zip(names, specs) if not isinstance(s, list)]
        if wrong:
            raise UnsupportedOpError(f"input {wrong[0]!r} is no tensor: run this model from Python")
        shapes = {n: tuple(d if d >= 0 else UNKNOWN_SIZE for d in s[1]) for n, s in zip(names, specs)}
        return shapes, {n: s[0] for n, s in zip(names, specs)}

    def open_inputs(self) -> list[str]:
        """The inputs that have a dimension of any size."""
        names, specs = self.executable.get_function_params("main"), self.executable.param_types["main"]
        return [n for n, s in zip(names, specs) if isinstance(s, list) and any(d < 0 for d in s[1])]

    def set_input(self, **values: Any) -> None:
        """Sets the inputs."""
        self.values.update(values)
        self.machine.set_input("main", **self.values)

    def run(self) -> None:
        """Runs ``main``."""
        self.machine.invoke_stateful("main")

    def get_num_outputs(self) -> int:
        """The number of results of the last run."""
        return len(self.machine.get_outputs())

    def get_output(self, index: int) -> Any:
        """A result of the last run."""
        return self.machine.get_outputs()[index]

    def profile(self, values: Mapping[str, Any]) -> str:
        """The times of each kernel and instruction."""
        from ..runtime.device import cpu
        from ..runtime.vm.profiler import VirtualMachineProfiler

        return str(VirtualMachineProfiler(self.executable, cpu(0)).profile(**values))


__all__ = ["VmRunner", "is_executable", "why_vm"]
