"""The examples in the documentation run."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from anchorleg.runtime.c_compiler import find_compiler
from anchorleg.runtime.registry import remove_global_func

DOCS = Path(__file__).resolve().parents[1] / "docs"


def blocks(name: str) -> list[str]:
    """The Python code of a page, block by block."""
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.S)


@pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
def test_the_example_of_an_external_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(blocks("external-codegen.md")[0], "external-codegen.md", "exec"), names)
    (symbol,) = [g.name_hint for g in names["cut"].functions if g.name_hint != "main"]  # type: ignore[attr-defined]
    assert symbol == "tvmgen_default_sumc_main_0" and names["cut"][symbol].get_attr("Compiler") == "sumc"  # type: ignore[index]
    got = names["module"].get_output(0).numpy()  # type: ignore[attr-defined]
    np.testing.assert_allclose(got, np.exp(np.maximum(names["a"] + names["b"], 0)), rtol=1e-6)  # type: ignore[operator]
    assert "7.389" in capsys.readouterr().out and (tmp_path / "model.so").exists()
    remove_global_func("relay.ext.sumc")
