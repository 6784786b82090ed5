"""A machine that notes how long each instruction takes, and each kernel."""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .bytecode import Opcode
from .machine import VirtualMachine

_NAMES = {24: "AllocTensor", 25: "AllocTensorReg", 26: "If", 27: "Invoke"}


class Entry(NamedTuple):
    """What was run how often for how long: an instruction's name, or a packed function's."""

    name: str
    count: int
    seconds: float


class Report:
    """The times of a run; ``str`` gives a table, ``calls`` one dict for each entry (upstream's keys)."""

    def __init__(self, entries: Sequence[Entry], seconds: float) -> None:
        self.entries = sorted(entries, key=lambda e: -e.seconds)
        self.seconds = seconds

    @property
    def calls(self) -> list[dict[str, Any]]:
        """One dict for each entry."""
        return [{"Name": e.name, "Count": e.count, "Duration (us)": e.seconds * 1e6, "Percent": 100 * e.seconds / max(self.seconds, 1e-12)}
                for e in self.entries]

    @property
    def device_metrics(self) -> dict[str, dict[str, float]]:
        """Totals for each device."""
        return {"cpu0": {"Duration (us)": self.seconds * 1e6}}

    def csv(self) -> str:
        """The entries as comma-separated values."""
        return "Name,Count,Duration (us),Percent\n" + "".join(
            f"{c['Name']},{c['Count']},{c['Duration (us)']:.3f},{c['Percent']:.2f}\n" for c in self.calls)

    def table(self, *_: Any, **__: Any) -> str:
        """The entries as a table."""
        width = max([len(e.name) for e in self.entries] + [4])
        lines = [f"{'Name':<{width}}  {'Count':>7}  {'Duration (us)':>14}  {'Percent':>7}"]
        lines += [f"{c['Name']:<{width}}  {c['Count']:>7}  {c['Duration (us)']:>14.2f}  {c['Percent']:>7.2f}" for c in self.calls]
        return "\n".join([*lines, f"{'Total':<{width}}  {sum(e.count for e in self.entries):>7}  {self.seconds * 1e6:>14.2f}"])

    __str__ = table


class VirtualMachineProfiler(VirtualMachine):
    """Runs instruction by instruction; `profile` gives the times."""

    def __init__(self, exe: Any, device: Any, memory_cfg: Any = None) -> None:
        super().__init__(exe, device, memory_cfg)
        self._times: dict[str, list[float]] | None = None

    def profile(self, *args: Any, func_name: str = "main", collectors: Any = None, **kwargs: Any) -> Report:
        """Runs a function (on what `set_input` set when no arguments are given) and gives the times."""
        self.invoke(func_name, *args, **kwargs)  # memory and caches as in a run that counts
        self._times = {}
        started = time.perf_counter()
        try:
            self.invoke(func_name, *args, **kwargs)
            total = time.perf_counter() - started
            entries = [Entry(n, int(c), s) for n, (c, s) in self._times.items()]
        finally:
            self._times = None
        return Report(entries, total)

    def get_stat(self, sort_by_time: bool = True) -> str:
        """The bytecode's statistics (times come from `profile`)."""
        return self._exec.stats

    def _loop(self) -> None:
        if self._times is None:
            super()._loop()
            return
        memory = self._memory
        core_, words = memory.core, memory.words
        pc, steps = core_.M_PC // 8, core_.M_STEPS // 8
        while True:
            name = self._name_at(int(words[pc]))
            words[steps] = 1
            started = time.perf_counter()
            status = core_.run(memory.address)
            try:
                if status == 1:
                    self._host_call()
                elif status == -1:
                    raise self._failure()
            except BaseException:
                core_.unwind(memory.address)
                raise
            entry = self._times.setdefault(name, [0, 0.0])
            entry[0] += 1
            entry[1] += time.perf_counter() - started
            if status == 0:
                return

    def _name_at(self, pc: int) -> str:
        import ctypes

        op, index = ctypes.c_int64.from_address(pc).value, ctypes.c_int64.from_address(pc + 8).value
        if op == Opcode.InvokePacked:
            return self._exec.packed[index].name
        return _NAMES.get(op) or Opcode(op).name


__all__ = ["Report", "VirtualMachineProfiler"]
