"""Archives hold everything a model needs, and read back."""
from __future__ import annotations

import tarfile

import numpy as np
import pytest

from anchorleg import relay
from anchorleg.micro import create_project, export_model_library_format, read_model_library_format
from anchorleg.support.errors import ArgumentError, ArtifactError

from .models import build_c, mlp


def test_round_trip(tmp_path):
    factory = build_c(mlp(), mod_name="small")
    path = export_model_library_format(factory, tmp_path / "small.tar")
    library = read_model_library_format(path)
    assert library.metadata["version"] == 7 and library.names == ["small"]
    facts = library.metadata["modules"]["small"]
    main = facts["memory"]["functions"]["main"][0]
    assert main["workspace_size_bytes"] == factory.plan.total and main["inputs"] == {"x": {"size": 128, "dtype": "float32"}}
    assert main["io_size_bytes"] == 128 + 40 and facts["executors"] == ["aot"] and facts["style"] == "full-model"
    names = {f["function_name"] for f in facts["memory"]["functions"]["operator_functions"]}
    assert names and all(n.startswith("tvmgen_small_fused") for n in names)
    assert "int32_t tvmgen_small_run(" in library.files["codegen/host/include/tvmgen_small.h"].decode()
    assert "codegen/host/src/small_lib0.c" in library.files and library.files["executor-config/aot/small.svg"].startswith(b"<svg")
    for name, value in factory.params.items():
        np.testing.assert_array_equal(library.params()[name].numpy(), value.numpy())


def test_two_models_in_one_archive(tmp_path):
    path = export_model_library_format([build_c(mlp(), mod_name="a"), build_c(mlp(), mod_name="b")], tmp_path / "two.tar")
    assert sorted(read_model_library_format(path).names) == ["a", "b"]
    with pytest.raises(ArgumentError, match="unique names"):
        export_model_library_format([build_c(mlp()), build_c(mlp())], tmp_path / "no.tar")


def test_graph_executor_models_are_exported(tmp_path):
    library = read_model_library_format(export_model_library_format(relay.build(mlp(), target="llvm"), tmp_path / "g.tar"))
    facts = library.metadata["modules"]["default"]
    assert facts["executors"] == ["graph"]
    main = facts["memory"]["functions"]["main"][0]
    assert main["inputs"] == {"x": {"size": 128, "dtype": "float32"}} and main["outputs"] == {"output": {"size": 40, "dtype": "float32"}}
    assert main["io_size_bytes"] == 168 and main["constants_size_bytes"] == 8296 and main["workspace_size_bytes"] == 40
    sids = facts["memory"]["sids"]
    assert {"storage_id": 0, "size_bytes": 128, "input_binding": "x"} in sids and sum(s["size_bytes"] for s in sids) >= 168 + 8296
    assert "executor-config/graph/default.graph" in library.files
    assert any(n.startswith("codegen/host/lib/") for n in library.files)


def test_damaged_archives(tmp_path):
    (tmp_path / "x.tar").write_bytes(b"no tar file")
    with pytest.raises(ArtifactError, match="not a Model Library Format archive"):
        read_model_library_format(tmp_path / "x.tar")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    with pytest.raises(ArtifactError):
        read_model_library_format(tmp_path / "empty.tar")


def test_projects_need_c_sources(tmp_path):
    with pytest.raises(ArgumentError, match="available: host"):
        create_project(build_c(mlp()), tmp_path, "toaster")
    from anchorleg.relay.backend import Executor

    with pytest.raises(ArgumentError, match="interface-api"):
        create_project(relay.build(mlp(), target="llvm", executor=Executor("aot")), tmp_path)


def test_the_archive_has_the_program_as_it_was_given(tmp_path):
    mod = mlp()
    for factory in (build_c(mod), relay.build(mod, target="llvm")):
        assert read_model_library_format(export_model_library_format(factory, tmp_path / "m.tar")).files["src/default.relay"].decode() == str(mod)
