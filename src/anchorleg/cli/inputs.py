"""Inputs from files: npz, npy, images, raw bytes; random ones when none are given."""
from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, Mapping

import numpy as np

from ..runtime.dtype import numpy_dtype
from ..support.errors import ArgumentError

_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp"}
Info = tuple[Mapping[str, tuple[int, ...]], Mapping[str, str]]


def random_inputs(info: Info, seed: int = 0) -> dict[str, np.ndarray]:
    """Seeded values for every input: normal floats, small non-negative integers."""
    rng, shapes, dtypes = np.random.default_rng(seed), *info
    values: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        dtype = numpy_dtype(dtypes[name])
        if dtype.kind in "iu":
            values[name] = rng.integers(0, 100, shape).astype(dtype)
        elif dtype.kind == "b":
            values[name] = np.ones(shape, dtype)
        else:
            values[name] = rng.standard_normal(shape).astype(dtype)
    return values


def read_inputs(texts: tuple[str, ...], info: Info) -> dict[str, np.ndarray]:
    """The values of ``--inputs``: ``FILE.npz``, ``NAME=FILE``, or a single ``FILE`` for a model of one input."""
    values: dict[str, np.ndarray] = {}
    for text in texts:
        name, mark, file = text.rpartition("=")
        path = Path(file if mark else text)
        if not path.is_file():
            raise ArgumentError(f"--inputs {text}: there is no file {path}")
        if path.suffix == ".npz":
            values.update(_read_npz(path))
        else:
            values[name or _only_input(info, text)] = _read_one(path, name or _only_input(info, text), info)
    _check_names(values, info)
    return values


def _check_names(values: Mapping[str, Any], info: Info) -> None:
    names = list(info[0])
    unknown = [n for n in values if n not in names]
    if unknown:
        raise ArgumentError(f"the model has no input {', '.join(map(repr, unknown))}; it has: {', '.join(names)}")
    missing = [n for n in names if n not in values]
    if missing:
        raise ArgumentError(f"no value is given for the input{'s' if len(missing) > 1 else ''} {', '.join(missing)}: add --inputs {missing[0]}=FILE")


def _only_input(info: Info, text: str) -> str:
    if len(info[0]) != 1:
        raise ArgumentError(f"--inputs {text}: the model has {len(info[0])} inputs, so say which: --inputs NAME={text} ({', '.join(info[0])})")
    return next(iter(info[0]))


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as exc:
        raise ArgumentError(f"{path}: not an npz file of plain arrays, or damaged; write it with numpy.savez(file, NAME=array)") from exc


def _read_one(path: Path, name: str, info: Info) -> np.ndarray:
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as exc:
            raise ArgumentError(f"{path}: not an npy file of a plain array, or damaged; write it with numpy.save(file, array)") from exc
    if name not in info[0]:
        raise ArgumentError(f"the model has no input {name!r}; it has: {', '.join(info[0])}")
    shape, dtype = info[0][name], info[1][name]
    return _read_image(path, shape, dtype) if path.suffix.lower() in _IMAGES else _read_raw(path, shape, dtype)


def _read_raw(path: Path, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    data, kind = path.read_bytes(), numpy_dtype(dtype)
    want = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if len(data) != want:
        raise ArgumentError(f"{path}: {len(data)} bytes, but {dtype}{list(shape)} takes {want}")
    return np.frombuffer(data, kind).reshape(shape)


def _read_image(path: Path, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An image scaled to the input's size, as floats in [0, 1] (or bytes), in the input's channel order."""
    try:
        from PIL import Image
    except ImportError:
        raise ArgumentError(f"{path}: reading images needs Pillow: pip install pillow") from None
    channels_last = len(shape) == 4 and shape[-1] in (1, 3)
    if len(shape) != 4 or shape[-1 if channels_last else 1] not in (1, 3):
        raise ArgumentError(f"{path}: an image fits inputs of shape (1, C, H, W) or (1, H, W, C) with 1 or 3 channels, not {list(shape)}")
    height, width = shape[1:3] if channels_last else shape[2:4]
    mode = "L" if shape[-1 if channels_last else 1] == 1 else "RGB"
    pixels = np.asarray(Image.open(path).convert(mode).resize((width, height)), dtype="float32").reshape(height, width, -1)
    if numpy_dtype(dtype).kind == "f":
        pixels = pixels / 255
    return (pixels if channels_last else pixels.transpose(2, 0, 1))[None].astype(numpy_dtype(dtype))
