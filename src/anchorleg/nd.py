"""Tensors, under the address users know; they live in :mod:`anchorleg.runtime.ndarray`."""
from .runtime.device import Device, cpu, cuda, device, opencl
from .runtime.ndarray import NDArray, array, empty, from_dlpack, numpyasarray

__all__ = ["Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "numpyasarray", "opencl"]
