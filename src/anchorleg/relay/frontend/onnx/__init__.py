"""The ONNX importer: ``from_onnx`` turns a model into a Relay module.

One converter per operator and version range, by family, in ``ops/``; reading files is in ``model_file``, tensors in
``tensors``, the walk over the graph in ``importer``.  The ``onnx`` package is loaded only when a model is imported.
"""
from __future__ import annotations

from .importer import from_onnx
from .registry import supported_ops

__all__ = ["from_onnx", "supported_ops"]
