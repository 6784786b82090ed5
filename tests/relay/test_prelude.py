"""The standard library: every function is well typed and does what its name says."""
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
