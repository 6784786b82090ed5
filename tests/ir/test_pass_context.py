"""Pass contexts: instruments that fail, the default context, options."""
from __future__ import annotations

import threading

import pytest

from anchorleg import relay
from anchorleg.ir import IRModule
from anchorleg.ir.instrument import PassInstrument, PassTimingInstrument
from anchorleg.ir.transform import PassContext, get_pass
from anchorleg.support.errors import ArgumentError


class Watch(PassInstrument):
    """Notes when its context is entered and left; may fail there."""

    def __init__(self, name, events, fail=""):
        self.name, self.events, self.fail = name, events, fail

    def enter_pass_ctx(self):
        self._note("enter")

    def exit_pass_ctx(self):
        self._note("exit")

    def _note(self, what):
        self.events.append(f"{self.name} {what}")
        if self.fail == what:
            raise RuntimeError("on purpose")


@pytest.mark.parametrize("fail, expected", [("enter", ["1 enter", "2 enter", "1 exit"]),
                                            ("exit", ["1 enter", "2 enter", "3 enter", "1 exit", "2 exit"])])
def test_an_instrument_that_fails(fail, expected):
    events: list[str] = []
    ctx = PassContext(instruments=[Watch("1", events), Watch("2", events, fail), Watch("3", events)])
    with pytest.raises(RuntimeError, match="on purpose"):
        with ctx:
            pass
    assert events == expected and ctx.instruments == [] and PassContext.current() is not ctx


def test_the_default_context_lasts_per_thread():
    default, timing = PassContext.current(), PassTimingInstrument()
    assert PassContext.current() is default
    default.override_instruments([timing])
    try:
        x = relay.var("x", shape=(1,))
        get_pass("InferType")(IRModule.from_expr(relay.Function([x], relay.exp(x))))
        assert "InferType" in timing.render()
        others = []
        thread = threading.Thread(target=lambda: others.append(PassContext.current()))
        thread.start(), thread.join()
        assert others[0] is not default
    finally:
        default.override_instruments(None)
    assert timing.render() == ""


def test_options_are_known_before_their_passes_are_loaded():
    configs = PassContext.list_configs()
    assert configs["relay.backend.use_auto_scheduler"]["type"] == "IntImm" and configs["tir.UnrollLoop"]["type"] == "Map"
    assert PassContext(config={"tir.disable_vectorize": 1}).get("tir.disable_vectorize") is True
    with pytest.raises(ArgumentError, match="did you mean tir.disable_vectorize"):
        PassContext(config={"tir.disable_vectorise": True})


def test_passes_are_found_by_name_without_being_imported():
    assert get_pass("SimplifyExpr").info.name == "SimplifyExpr"
    with pytest.raises(ArgumentError, match="no pass is named"):
        get_pass("NoSuchPass")
