"""Unique names and global variables."""
from __future__ import annotations

import pytest

from anchorleg import relay
from anchorleg.ir import GlobalVar, IRModule
from anchorleg.ir.supply import GlobalVarSupply, NameSupply
from anchorleg.support.errors import ArgumentError


def test_names_with_and_without_prefix():
    supply = NameSupply("p")
    assert supply.reserve_name("a") == "p_a" and supply.contains_name("a") and not supply.contains_name("a", add_prefix=False)
    assert supply.fresh_name("a") == "p_a_1" and supply.fresh_name("a") == "p_a_2"
    assert supply.fresh_name("a", add_prefix=False) == "a"
    assert supply.fresh_name("a.b", add_underscore=False) == "p_a_b" and supply.fresh_name("a.b", add_underscore=False) == "p_a_b1"


def test_global_variables():
    supply = GlobalVarSupply(NameSupply())
    first = supply.fresh_global("f")
    assert supply.unique_global_for("f") is first and supply.fresh_global("f").name_hint == "f_1"
    with pytest.raises(ArgumentError, match="belongs to another"):
        supply.reserve_global(GlobalVar("f"))
    supply.reserve_global(GlobalVar("f"), allow_conflict=True)


def test_of_a_module_names_are_taken_and_its_name_is_the_prefix():
    x = relay.var("x", shape=(1,))
    mod = IRModule({"f": relay.Function([x], x)}).with_attr("mod_name", "model")
    supply = GlobalVarSupply(mod)
    assert supply.unique_global_for("f", add_prefix=False) is mod.get_global_var("f")
    assert supply.unique_global_for("f").name_hint == "model_f"
    assert supply.fresh_global("f", add_prefix=False).name_hint == "f_1"
