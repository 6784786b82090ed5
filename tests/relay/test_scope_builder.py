"""ScopeBuilder: lets and conditions in order, and what it refuses."""
import pytest

from anchorleg import ir, relay


def test_lets_and_branches():
    cond, x = relay.var("cond", "bool"), relay.var("x", "float32")
    sb = relay.ScopeBuilder()
    a = sb.let(("a", relay.scalar_type("float32")), x)
    with sb.if_scope(cond):
        b = sb.let("b", relay.Tuple([a]))
        sb.ret(b)
    with sb.else_scope():
        sb.ret(relay.Tuple([x]))
    b2 = relay.var("b")
    a2 = relay.var("a", "float32")
    expected = relay.Let(a2, x, relay.If(cond, relay.Let(b2, relay.Tuple([a2]), b2), relay.Tuple([x])))
    ir.assert_structural_equal(sb.get(), expected)


def test_type_of():
    sb = relay.ScopeBuilder()
    x = relay.var("x", "int8")
    assert sb.type_of(x) is x.type_annotation
    placeholder = sb.type_of(relay.const(1))
    sb.ret(x)
    assert sb.get().var.type_annotation is placeholder


def test_unfinished_scopes_are_refused():
    sb = relay.ScopeBuilder()
    with pytest.raises(RuntimeError, match="ret was not called"):
        sb.get()
    with sb.if_scope(relay.const(True)):
        sb.ret(relay.const(1))
    with pytest.raises(RuntimeError, match="followed by else_scope"):
        sb.get()
    with pytest.raises(RuntimeError, match="already called"):
        sb.ret(relay.const(1))
    with sb.else_scope():
        sb.ret(relay.const(2))
    with pytest.raises(RuntimeError, match="must follow an if_scope"):
        with sb.else_scope():
            sb.ret(relay.const(1))
