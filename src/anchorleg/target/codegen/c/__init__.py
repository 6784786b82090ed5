"""C99 from flat loop programs, for machines with no operating system: nothing is needed but a freestanding compiler."""
from .kernel import CKernel, emit_c_kernel
from .source import CSource

__all__ = ["CKernel", "CSource", "emit_c_kernel"]
