"""Pass instruments, under the address users know; they live in :mod:`anchorleg.ir.instrument`."""
from .ir.instrument import DumpIR, PassInstrument, PassTimingInstrument, PrintAfterAll, PrintBeforeAll, pass_instrument

__all__ = ["DumpIR", "PassInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll", "pass_instrument"]
