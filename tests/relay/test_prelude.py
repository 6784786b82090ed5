"""The standard library: every function is well typed and does what its name says."""
import numpy as np
import pytest

from anchorleg import ir, relay
from anchorleg.relay.prelude import Prelude, StaticTensorArrayOps, get_tensor_array_shape
from anchorleg.relay.transform.infer_type import InferType
from anchorleg.support.errors import ArgumentError


@pytest.fixture(scope="module")
def prelude():
    p = Prelude()
    for library in ("nat.rly", "gradient.rly", "core.rly"):
        p.mod.import_from_std(library)
    for shape, batch in (((), None), ((2,), None), ((relay.Any(), 3), None), ((4, 5), 1)):
        StaticTensorArrayOps(p, "float32", shape, batch).register()
    return p


def test_everything_types_and_survives_a_round_trip(prelude):
    mod = InferType()(prelude.mod)
    assert len(mod.functions) > 300
    assert str(mod["map"].checked_type) == "fn [A, B](fn (A) -> B, List[A]) -> List[B]"
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)


def test_importing_again_changes_nothing(prelude):
    before = len(prelude.mod.functions)
    prelude.mod.import_from_std("prelude.rly")
    Prelude(prelude.mod)
    assert len(prelude.mod.functions) == before
    with pytest.raises(ArgumentError, match="no standard library is named 'x.rly'"):
        prelude.mod.import_from_std("x.rly")


def test_names(prelude):
    assert prelude.get_global_var("tensor_array_read", "int32").name_hint == "tensor_array_read_int32"
    assert prelude.get_tensor_ctor("tensor2", "float32").belong_to is prelude.get_type("tensor_t", "float32")
    assert prelude.get_name_static("tensor_t", "float32", (relay.Any(), 3)) == "static_tensor_float32_any_3_t"
    assert prelude.get_name_static("tensor_array_stack", "float32", (4, 5), 1) == "tensor_array_stack_float32_batch1_4_5"
    assert prelude.get_tensor_ctor_static("tensor_constructor", "float32", (2,)).inputs[0].dims == (2,)
    assert prelude.hd is prelude.mod.get_global_var("hd")
    with pytest.raises(ArgumentError, match="no constructor"):
        prelude.get_tensor_ctor("tensor9", "float32")


def test_constructor_tags_are_unique(prelude):
    tags = [c.tag for data in prelude.mod.type_definitions.values() for c in data.constructors]
    assert len(set(tags)) == len(tags)
    cons = prelude.mod.get_type("List")[1]
    assert prelude.mod.get_constructor(cons.tag) is cons


def test_shape_of_a_tensor_array(prelude):
    make = prelude.get_global_var_static("tensor_array", "float32", (relay.Any(), 3))
    shape = get_tensor_array_shape(make(relay.const(2)), "float32", prelude)
    assert isinstance(shape[0], relay.Any) and shape[1] == 3
    assert get_tensor_array_shape(prelude.get_global_var("tensor_array", "float32")(relay.const(2)), "float32", prelude) is None


def _list(prelude, values):
    _, cons, nil = prelude.mod.get_type("List")
    out = nil()
    for value in reversed(values):
        out = cons(value if isinstance(value, relay.Expr) else relay.const(value), out)
    return out


def _plain(value):
    """A result as Python data: lists, options, trees and tuples."""
    if hasattr(value, "constructor"):
        name, fields = value.constructor.name_hint, [_plain(f) for f in value.fields]
        if name == "Cons":
            return [fields[0], *fields[1]]
        if name.startswith("tensor") and len(fields) == 1:
            return fields[0]
        return [] if name == "Nil" else (name, *fields) if fields else name
    if hasattr(value, "numpy"):
        return value.numpy().tolist()
    return tuple(_plain(v) for v in value)


def _run(prelude, expr):
    return _plain(relay.create_executor("debug", mod=prelude.mod, target="numpy").evaluate(expr))


def _fn(body, *names):
    params = [relay.var(n, "int32") for n in names]
    return relay.Function(params, body(*params))


def test_lists(prelude):
    p, c = prelude, relay.const
    some = _list(p, [3, 1, 2])
    assert _run(p, p.map(_fn(lambda x: x + c(10), "x"), some)) == [13, 11, 12]
    assert _run(p, p.foldl(_fn(lambda a, x: a - x, "a", "x"), c(0), some)) == -6
    assert _run(p, p.foldr(_fn(lambda x, a: x - a, "x", "a"), c(0), some)) == 4
    assert _run(p, p.foldr1(_fn(lambda x, a: x - a, "x", "a"), some)) == 4
    assert _run(p, relay.Tuple([p.sum(some), p.length(some), p.hd(some), p.nth(some, c(2))])) == (6, 3, 3, 2)
    assert _run(p, p.update(some, c(1), c(9))) == [3, 9, 2]
    assert _run(p, p.concat(some, p.rev(some))) == [3, 1, 2, 2, 1, 3]
    assert _run(p, p.filter(_fn(lambda x: relay.greater(x, c(1)), "x"), some)) == [3, 2]
    assert _run(p, p.zip(some, p.tl(some))) == [(3, 1), (1, 2)]


def test_maps_that_carry_a_value_and_unfolding(prelude):
    p, c = prelude, relay.const
    some = _list(p, [1, 2, 3])
    step = _fn(lambda a, x: relay.Tuple([a + x, a * x]), "a", "x")
    assert _run(p, p.map_accuml(step, c(1), some)) == (7, [12, 4, 1])
    assert _run(p, p.map_accumr(step, c(1), some)) == (7, [6, 8, 3])
    _, one, none = p.mod.get_type("Option")
    n = relay.var("n", "int32")
    count = relay.Function([n], relay.If(relay.equal(n, c(3)), none(), one(relay.Tuple([n + c(1), n * c(10)]))))
    assert _run(p, p.unfoldr(count, c(0))) == [0, 10, 20]
    assert _run(p, p.unfoldl(count, c(0))) == [20, 10, 0]


def test_functions_of_functions_trees_and_naturals(prelude):
    p, c = prelude, relay.const
    double, inc = _fn(lambda x: x * c(2), "x"), _fn(lambda x: x + c(1), "x")
    assert _run(p, p.compose(double, inc)(c(5))) == 12
    assert _run(p, p.flip(_fn(lambda a, b: a - b, "a", "b"))(c(1), c(5))) == 4
    assert _run(p, p.iterate(double, c(5))(c(1))) == 32
    rose = p.mod.get_type("Tree")[1]
    tree = rose(c(1), _list(p, [rose(c(2), _list(p, [])), rose(c(3), _list(p, []))]))
    assert _run(p, p.size(tree)) == 3
    assert _run(p, p.tmap(inc, tree)) == ("Rose", 2, [("Rose", 3, []), ("Rose", 4, [])])
    _, zero, succ = p.mod.get_type("nat")
    two = succ(succ(zero()))
    some = _list(p, [5, 6, 7])
    assert _run(p, p.mod.get_global_var("nat_nth")(some, two)) == 7
    assert _run(p, p.mod.get_global_var("nat_update")(some, two, c(0))) == [5, 6, 0]
    assert _run(p, p.mod.get_global_var("nat_iterate")(double, p.mod.get_global_var("nat_add")(two, two))(c(1))) == 16


def test_dynamic_tensor_arrays(prelude):
    p, c = prelude, relay.const
    get = lambda name: p.get_global_var(name, "int32")  # noqa: E731
    make = lambda rank, value: p.get_tensor_ctor(f"tensor{rank}", "int32")(relay.const(np.array(value, "int32")))  # noqa: E731
    pair = _list(p, [make(1, [1, 2]), make(1, [3, 4])])
    assert _run(p, get("tensor_array")(c(2))) == ["tensor_nil_int32"] * 2
    assert _run(p, get("tensor_array_read")(pair, c(1))) == [3, 4]
    assert _run(p, get("tensor_array_write")(pair, c(0), make(0, 7))) == [7, [3, 4]]
    assert _run(p, get("tensor_array_stack")(pair)) == [[1, 2], [3, 4]]
    assert _run(p, get("tensor_array_concat")(pair)) == [1, 2, 3, 4]
    assert _run(p, get("tensor_array_gather")(pair, relay.const(np.array([1, 0, 1], "int32")))) == [[3, 4], [1, 2], [3, 4]]
    assert _run(p, get("tensor_array_scatter")(pair, relay.const(np.array([1, 0], "int32")), pair)) == [[3, 4], [1, 2]]
    assert _run(p, get("tensor_array_unstack_tensor2")(relay.const(np.array([[1, 2], [3, 4]], "int32")))) == [[1, 2], [3, 4]]
    assert _run(p, get("tensor_array_split")(pair, make(1, [1, 2, 3]), relay.const(np.array([1, 2], "int32")))) == [[1], [2, 3]]


def test_static_tensor_arrays(prelude):
    p = prelude
    value = relay.const(np.array([1, 2], "float32"))
    make = p.get_tensor_ctor_static("tensor_constructor", "float32", (2,))
    get = lambda name: p.get_global_var_static(name, "float32", (2,))  # noqa: E731
    pair = _list(p, [make(value), make(value + value)])
    assert _run(p, get("tensor_array_stack")(pair)) == [[1, 2], [2, 4]]
    assert _run(p, get("tensor_get_data")(get("tensor_array_read")(pair, relay.const(1)))) == [2, 4]
    assert _run(p, get("tensor_array_unstack")(value)) == [1, 2]
