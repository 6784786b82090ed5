"""Einstein's sums over sizes that only the inputs tell, against ONNX Runtime."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .test_dynamic_inputs import f, single

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize("equation, shapes", [
    ("bij,bjk->bik", [("b", "i", "j"), ("b", "j", "k")]), ("bhid,bhjd->bhij", [("b", 2, "i", 4), ("b", 2, "j", 4)]), ("ij,kj->ki", [("i", "j"), ("k", "j")]),
    ("bi,bi->b", [("b", "i"), ("b", "i")]), ("i,j->ij", [("i",), ("j",)]), ("bii->bi", [("b", 3, 3)]), ("ij->", [("i", "j")]),
    ("...ij,...jk->...ik", [("b", "i", "j"), ("b", "j", "k")]), ("ij,jk,kl->il", [("i", "j"), ("j", "k"), ("k", 2)])])
def test_einsum_over_unknown_sizes(equation: str, shapes: list[tuple[Any, ...]]) -> None:
    def feed(**sizes: int) -> dict[str, np.ndarray]:
        return {f"x{i}": f(*(sizes.get(d, d) for d in s)) for i, s in enumerate(shapes)}  # type: ignore[arg-type]

    feeds = [feed(b=2, i=3, j=4, k=5), feed(b=1, i=1, j=1, k=1), feed(b=3, i=7, j=33, k=2)]
    single("Einsum", feeds, {f"x{i}": list(s) for i, s in enumerate(shapes)}, equation=equation)
