"""Renderers are given what type inference finds wrong, and no others change what is raised."""
import pytest

from anchorleg import IRModule, relay
from anchorleg.ir import diagnostics
from anchorleg.relay.transform import AnnotateSpans, InferType
from anchorleg.support.errors import ArgumentError, TypeMismatchError


def wrong():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 5))
    return IRModule.from_expr(relay.Function([x, y], relay.nn.dense(x, y)))


def test_an_overriding_renderer_sees_each_message():
    seen = []
    diagnostics.override_renderer(lambda ctx: seen.extend(ctx.diagnostics))
    try:
        with pytest.raises(TypeMismatchError):
            InferType()(wrong())
    finally:
        diagnostics.override_renderer(None)
    assert [d.level for d in seen] == [diagnostics.DiagnosticLevel.ERROR] and "nn.dense" in seen[0].message
    with pytest.raises(TypeMismatchError):
        InferType()(wrong())
    assert len(seen) == 1


def test_the_default_renderer_writes_to_stderr(capsys):
    ctx = diagnostics.DiagnosticContext(None, diagnostics.get_renderer())
    ctx.emit(diagnostics.Diagnostic(30, None, "beware"))
    ctx.render()
    assert capsys.readouterr().err == "warning: beware\n"


def test_span_check_wants_calls_of_known_origin():
    x = relay.var("x", shape=(2,))
    mod = IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with pytest.raises(ArgumentError, match="1 calls have no span, in @main"):
        relay.SpanCheck()(mod)
    annotated = AnnotateSpans()(mod)
    assert relay.SpanCheck()(annotated) is annotated
