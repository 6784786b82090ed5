"""The exported file: round trips, determinism, and every way of being damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from anchorleg.runtime import array, cpu, load_module
from anchorleg.runtime.artifact import MANIFEST, pack_tensors, read_artifact, unpack_tensors, write_artifact
from anchorleg.runtime.compiled import CompiledModule
from anchorleg.runtime.executor_factory import GraphExecutorFactory
from anchorleg.runtime.export import find_compiler
from anchorleg.runtime.graph_executor import GraphModule
from anchorleg.runtime.params import save_param_dict
from anchorleg.support.errors import ArgumentError, ArtifactError, BuildError

X = np.arange(16, dtype=np.float32)
MEMBERS = {"a.txt": b"hello", "code/0.o": bytes(range(256)) * 40, "empty": b""}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "out.alg"
    write_artifact(path, MEMBERS, {"kind": "test"})
    return path


@pytest.fixture
def factory(make_graph, library):
    graph = make_graph([("x", None, []), ("w", None, []), ("s", "add", [0, 1])], [2], [[16]] * 3, [0, 1, 2])
    return GraphExecutorFactory(graph, library, {"w": X * 3}, ignored=["old"])


def test_round_trip(file):
    manifest, members = read_artifact(file)
    assert manifest["kind"] == "test" and {name: bytes(members[name]) for name in members} == MEMBERS
    assert zipfile.ZipFile(file).testzip() is None
    assert all(start % 64 == 0 for start, _ in members._places.values())


def test_same_content_same_bytes(file, tmp_path):
    write_artifact(tmp_path / "again", MEMBERS, {"kind": "test"})
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def test_prefix(tmp_path):
    write_artifact(tmp_path / "p", MEMBERS, {}, prefix=b"x" * 1001)
    manifest, members = read_artifact(tmp_path / "p")
    assert bytes(members["a.txt"]) == b"hello"
    assert all(start % 64 == 0 for start, _ in members._places.values())


@pytest.mark.parametrize("cut", [0, 1, 30, 100, 0.5, 0.9, -1, -22, -40])
def test_truncated(file, cut):
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * cut) if isinstance(cut, float) else cut])
    with pytest.raises(ArtifactError):
        manifest, members = read_artifact(file)
        for name in members:
            members[name]


def test_every_altered_byte_is_noticed_or_harmless(file):
    data = file.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(data), 400, replace=False):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1:])
        try:
            _, members = read_artifact(file)
            assert {name: bytes(members[name]) for name in members} == MEMBERS
        except ArtifactError:
            pass


def test_altered_member(file):
    data = bytearray(file.read_bytes())
    data[data.find(b"hello")] ^= 1
    file.write_bytes(data)
    _, members = read_artifact(file)
    bytes(members["code/0.o"])
    with pytest.raises(ArtifactError, match="member 'a.txt' was altered"):
        members["a.txt"]


def _rezip(file, change):
    """The archive with its manifest changed, as a hand with good intentions might."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop(MANIFEST))
    change(manifest, members)
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in {MANIFEST: json.dumps(manifest), **members}.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda m, d: m.update(version=99), "format version 99"),
        (lambda m, d: m.update(format="else"), "none that this package wrote"),
        (lambda m, d: m["members"].pop("empty"), "not those its manifest lists"),
        (lambda m, d: d.update({"../evil": b"x"}), "leaves the archive"),
        (lambda m, d: d.update({"/etc/evil": b"x"}), "leaves the archive"),
        (lambda m, d: m.pop("members"), "damaged"),
        (lambda m, d: m["members"].update(empty=3), "damaged"),
    ],
)
def test_wrong_manifests(file, change, text):
    _rezip(file, change)
    with pytest.raises(ArtifactError, match=text):
        read_artifact(file)


def test_unknown_kind(file):
    with pytest.raises(ArtifactError, match="kind 'test'; this version reads: .*graph"):
        load_module(file)


def test_writer_refuses_bad_names(tmp_path):
    with pytest.raises(ArtifactError):
        write_artifact(tmp_path / "x", {"../up": b""}, {})
    with pytest.raises(ArgumentError):
        write_artifact(tmp_path / "x", {MANIFEST: b""}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_leaves_nothing(tmp_path, monkeypatch):
    import anchorleg.support.files as files

    real = os.open
    monkeypatch.setattr(files.os, "open", lambda path, flags, mode=0o777: (real(path, flags, mode), real("/dev/full", os.O_WRONLY))[1])
    (tmp_path / "out").write_bytes(b"before")
    with pytest.raises(ArtifactError, match="No space left on device; nothing was left behind"):
        write_artifact(tmp_path / "out", {"big": bytes(1 << 20)}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_bytes() == b"before"


def test_missing_folder(tmp_path):
    with pytest.raises(ArtifactError, match="cannot write"):
        write_artifact(tmp_path / "no" / "out", {}, {})


def test_tensors(tmp_path):
    import ml_dtypes

    tensors = {
        "f": np.arange(6, dtype=np.float32).reshape(2, 3), "s": np.float64(3), "b": np.array([True, False]),
        "h": np.arange(5).astype(ml_dtypes.bfloat16), "e": np.zeros((0, 4), np.int8),
    }
    index, members = pack_tensors(tensors)
    write_artifact(tmp_path / "t", members, {"params": index})
    manifest, read = read_artifact(tmp_path / "t")
    loaded = unpack_tensors(manifest["params"], read)
    for name, value in tensors.items():
        assert loaded[name].numpy().dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(loaded[name].numpy(), value)
        assert loaded[name].data_ptr % 64 == 0 or loaded[name].size == 0
    loaded["f"][0, 0] = 9  # writing changes this process's copy, not the file
    assert unpack_tensors(manifest["params"], read_artifact(tmp_path / "t")[1])["f"].numpy()[0, 0] == 0


def check(path) -> None:
    module = GraphModule(load_module(path)["default"](cpu(0)))
    module.set_input(old=1)
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 4 * X)


def test_export_archive(factory, tmp_path):
    assert factory.export_library(tmp_path / "model.tar") == str(tmp_path / "model.tar")
    check(tmp_path / "model.tar")
    loaded = load_module(tmp_path / "model.tar")
    assert json.loads(loaded["get_graph_json"]())["heads"] == [[2, 0, 0]]
    assert set(loaded["get_graph_params"]()) == {"w"}
    loaded.export_library(tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "model.tar").read_bytes()


def test_export_without_parameters(factory, tmp_path):
    factory["remove_params"]().export_library(tmp_path / "model.tar")
    loaded = load_module(tmp_path / "model.tar")
    assert not loaded["get_graph_params"]() and factory.params
    module = GraphModule(loaded["default"](cpu(0)))
    module.load_params(save_param_dict(factory.get_params()))
    module.set_input(old=1)
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output(0).numpy(), 4 * X)


@pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
def test_export_shared_library(factory, tmp_path):
    factory.export_library(tmp_path / "model.so", link=True)
    check(tmp_path / "model.so")
    # a C program sees a plain shared library
    import ctypes

    assert ctypes.CDLL(str(tmp_path / "model.so")).add16
    script = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); from test_artifact import check; " \
             f"check({str(tmp_path / 'model.so')!r}); import sys; assert 'llvmlite' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_export_without_a_compiler(factory, tmp_path, monkeypatch):
    import anchorleg.runtime.export as export

    monkeypatch.setattr(export, "find_compiler", lambda: None)
    factory.export_library(tmp_path / "model.so")
    check(tmp_path / "model.so")
    with pytest.raises(BuildError, match="no C compiler"):
        factory.export_library(tmp_path / "linked.so", link=True)


def test_export_library_alone(library, tmp_path):
    library.export_library(tmp_path / "code.tar")
    assert load_module(tmp_path / "code.tar")["rank"](array(np.zeros((2, 2)))) == 2


def test_features_the_machine_lacks(factory, library, tmp_path):
    factory.lib = CompiledModule(library.objects, library.kernels, library.triple, "future", ["quantum512"])
    factory.export_library(tmp_path / "model.tar")
    loaded = load_module(tmp_path / "model.tar")
    with pytest.raises(ArtifactError, match="lacks: quantum512"):
        loaded["default"](cpu(0))


def test_no_pickle(factory, tmp_path):
    factory.export_library(tmp_path / "m.tar")
    with zipfile.ZipFile(tmp_path / "m.tar") as archive:
        assert archive.namelist() == [MANIFEST, "code/00000.o", "graph.json", "params/00000.bin"]
    shutil.copy(tmp_path / "m.tar", tmp_path / "copy")
    check(tmp_path / "copy")
