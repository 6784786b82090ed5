"""Identifiers and unique names."""

from __future__ import annotations

from hypothesis import given, strategies as st

from anchorleg.support.names import NameSupply, sanitize, shorten


@given(st.text())
def test_sanitized_text_is_an_identifier(text):
    word = sanitize(text)
    assert word.isidentifier() and word.isascii() and sanitize(word) == word


@given(st.lists(st.sampled_from(["x", "x_1", "y", "x_1_1"]), max_size=30))
def test_fresh_names_differ(hints):
    supply = NameSupply(taken=["x"])
    names = [supply.fresh(hint) for hint in hints]
    assert len(set(names)) == len(names) and "x" not in names


def test_many_names_from_one_hint():
    supply = NameSupply("fn")
    assert [supply.fresh("a") for _ in range(3)] == ["fn_a", "fn_a_1", "fn_a_2"]
    supply.reserve("fn_b")
    assert supply.fresh("b") == "fn_b_1" and "fn_b" in supply


def test_shorten():
    assert shorten("short", 10, "abc") == "short"
    assert shorten("a_very_long_name", 10, "abc") == "a_very_abc"
