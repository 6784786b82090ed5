"""The parts of a backend: partitioner, lowering, code generation."""
from .codegen import UMACodegen
from .lower import UMALower
from .partitioner import UMAPartitioner
from .utils import PassPhase

__all__ = ["PassPhase", "UMACodegen", "UMALower", "UMAPartitioner"]
