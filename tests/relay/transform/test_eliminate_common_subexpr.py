"""EliminateCommonSubexpr."""
from __future__ import annotations

from anchorleg import relay
from anchorleg.ir.transform import get_pass
from anchorleg.relay.analysis.variables import exprs
from anchorleg.relay.transform import EliminateCommonSubexpr
from anchorleg.relay.transform.common import is_op

from .passes import apply, check, count, of, unchanged

HEAD = "def @main(%x: Tensor[(2, 2), float32]) "


def test_equal_calls_become_one() -> None:
    check("EliminateCommonSubexpr", HEAD + "{ add(nn.relu(add(%x, 1f)), nn.relu(add(%x, 1f))) }",
          HEAD + "{ %0 = nn.relu(add(%x, 1f)); add(%0, %0) }")


def test_attributes_tell_calls_apart() -> None:
    unchanged("EliminateCommonSubexpr", HEAD + "{ add(sum(%x, axis=[0], keepdims=True), sum(%x, axis=[1], keepdims=True)) }")


def test_dtypes_tell_constants_apart() -> None:
    mod = apply("EliminateCommonSubexpr", of(relay.Tuple([relay.negative(relay.const(0, "int32")), relay.negative(relay.const(0.0))])))
    assert count(mod, "negative") == 2


def test_zeros_of_either_sign_stay_apart() -> None:
    x = relay.var("x", shape=(2,))
    mod = apply("EliminateCommonSubexpr", of(relay.Tuple([relay.add(x, relay.const(0.0)), relay.add(x, relay.const(-0.0))])))
    assert count(mod, "add") == 2


def test_tuples_and_their_fields() -> None:
    x = relay.var("x", shape=(2, 4))
    parts = [relay.split(x, 2, axis=1)[i] for i in (0, 0)]
    mod = apply("EliminateCommonSubexpr", of(relay.add(*parts)))
    assert count(mod, "split") == 1 and mod["main"].body.args[0] is mod["main"].body.args[1]


def test_random_numbers_are_drawn_as_often_as_before() -> None:
    text = HEAD + "{ let %r = ref(%x); let %a = ref_read(%r); let %u = ref_write(%r, add(%a, %a)); let %b = ref_read(%r); (%a, %b) }"
    unchanged("EliminateCommonSubexpr", text)


def test_what_the_caller_skips_stays() -> None:
    x = relay.var("x", shape=(2,))
    mod = of(relay.multiply(relay.add(x, relay.const(1.0)), relay.add(x, relay.const(1.0))))
    assert count(apply(EliminateCommonSubexpr(lambda e: is_op(e, "add")), mod), "add") == 2
    assert count(apply(EliminateCommonSubexpr(), mod), "add") == 1


def test_what_is_rebuilt_inside_a_match_gets_its_type() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
        type L { C(Tensor[(2), float32], L), N }
        def @main(%l: L, %x: Tensor[(2), float32]) -> L {
            match (%l) { C(%h, %t) => if (less(sum(tanh(%x)), sum(tanh(%x)))) { C(add(tanh(%x), tanh(%h)), %t) } else { N }, N => C(tanh(%x), N) }
        }""")
    after = get_pass("InferType")(apply("EliminateCommonSubexpr", mod))
    assert count(after, "tanh") == 2
    assert all(e._checked_type is not None for e in exprs(after["main"]) if isinstance(e, (relay.Call, relay.If, relay.Match)))
