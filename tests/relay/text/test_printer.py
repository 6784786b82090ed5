"""The text format as it is written: what is written in place, what gets a line, names, notes and metadata."""
import numpy as np
import pytest

from anchorleg import ir, relay
from anchorleg.ir.attrs import BOOL, FLOAT, INT, OPT_INT, STR, Attrs, Field
from anchorleg.ir.op import register_op
from anchorleg.relay.text.parser import parse_expr, parse_untyped

HEADER = '#[version = "0.0.5"]\n'


class _Attrs(Attrs, name="test.attrs.Print"):
    axis = Field(INT)
    eps = Field(FLOAT, 1e-5)
    scale = Field(BOOL, True)
    layout = Field(STR, "NCHW")
    units = Field(OPT_INT, None)


register_op("test.f")
register_op("test.g").attrs_type = _Attrs


def f(*args):
    return relay.Call(ir.Op.get("test.f"), args)


def g(x, **attrs):
    return relay.Call(ir.Op.get("test.g"), [x], _Attrs(**attrs))


def text(node, **kwargs):
    full = node.astext(**kwargs)
    assert full.startswith(HEADER)
    return full[len(HEADER):]


def test_shared_and_nested_expressions_get_lines_the_last_one_does_not():
    x, y = relay.var("x", shape=(3, 2)), relay.var("y")
    z = f(x, relay.const(10e10))
    assert text(relay.Function([x, y], f(z, z))) == (
        "fn (%x: Tensor[(3, 2), float32], %y) {\n  %0 = test.f(%x, 1e+11f);\n  test.f(%0, %0)\n}")


def test_lines_come_in_the_order_in_which_operands_are_ready():
    x = relay.var("x")
    assert text(f(f(f(x)), f(f(x), x))) == (
        "free_var %x;\n%0 = test.f(%x);\n%1 = test.f(%x);\n%2 = test.f(%0);\n%3 = test.f(%1, %x);\ntest.f(%2, %3)")


def test_arguments_stand_before_a_function_that_is_called():
    x, y = relay.var("x"), relay.var("y")
    inner = relay.Call(relay.Function([y], y), [relay.const(1)])
    assert text(relay.Call(relay.Function([x], x), [inner])) == (
        "%0 = fn (%y) {\n  %y\n};\n%1 = %0(1);\n%2 = fn (%x) {\n  %x\n};\n%2(%1)")


def test_branches_are_scopes():
    x, c = relay.var("x"), relay.var("c")
    assert text(relay.If(c, f(f(x)), x)) == (
        "free_var %c;\nif (%c) {\n  free_var %x;\n  %0 = test.f(%x);\n  test.f(%0)\n} else {\n  %x\n}")


def test_let_and_what_its_value_needs():
    x, y, t = relay.var("x"), relay.var("y"), relay.Tuple([relay.const(0), relay.const(0)])
    assert text(relay.Let(x, t, t)) == "%0 = (0, 0);\nlet %x = %0;\n%0"
    assert text(relay.Let(x, t, x)) == "let %x = (0, 0);\n%x"
    assert text(f(relay.Let(y, x, y))) == "free_var %x;\n%0 = (\n  let %y = %x;\n  %y\n);\ntest.f(%0)"
    assert text(relay.Let(x, relay.Let(y, relay.const(1), y), x)) == "let %x = (\n  let %y = 1;\n  %y\n);\n%x"


def test_free_variables_are_declared_before_their_first_use():
    x, y = relay.var("x"), relay.var("y")
    fn = relay.Function([y], f(f(y), x))
    program = f(relay.Call(fn, [f(x)]), relay.Tuple([f(x), fn]))
    shown = text(program)
    assert shown.index("free_var %x;") < shown.index("(%x)")
    assert ir.structural_equal(parse_expr(shown), program, map_free_vars=True)


def test_what_is_shared_across_scopes_is_defined_before_it_is_used():
    x, y = relay.var("x"), relay.var("y")
    shared = f(x)
    fn = relay.Function([y], f(shared, y))
    program = relay.Function([x], f(relay.Call(fn, [f(f(shared))]), f(f(shared))))
    assert ir.structural_equal(parse_expr(program.astext()), program)


@pytest.mark.parametrize("value, dtype, shown", [
    (42, "int16", "42i16"), (42, "int32", "42"), (42, "int64", "42i64"), (3, "float16", "3f16"), (3, "float32", "3f"),
    (3, "float64", "3f64"), (True, "bool", "True"), (1e-5, "float32", "1e-05f"), (float("inf"), "float32", "inff"),
    (float("-inf"), "float64", "-inff64"), (float("nan"), "float32", "nanf"), (-0.0, "float32", "-0f"), (100000, "float32", "100000f"),
    (1234567, "float32", "1234567f"), (1 / 3, "float64", "0.3333333333333333f64"), (65504, "float16", "65504f16"),
    (-(2**63), "int64", "-9223372036854775808i64")])
def test_scalars_read_back_as_the_same_value(value, dtype, shown):
    const = relay.const(value, dtype)
    assert text(const) == shown
    assert ir.structural_equal(parse_expr(shown), const)


def test_types():
    a = relay.TypeVar("a")
    tensor = relay.TensorType((relay.Any(), 3), "int8")
    assert str(tensor) == "Tensor[(?, 3), int8]"
    assert str(relay.TupleType([relay.scalar_type("bool")])) == "(bool,)"
    assert str(relay.FuncType([a, tensor], relay.RefType(a), [a])) == "fn [a](a, Tensor[(?, 3), int8]) -> ref(a)"
    assert str(relay.GlobalTypeVar("List")(a)) == "List[a]"


def test_attributes_in_declared_order_without_those_at_their_default():
    x = relay.var("x")
    assert text(g(x, axis=1)) == "free_var %x;\ntest.g(%x, axis=1)"
    assert text(g(x, layout='N"C', eps=0.1, axis=-1, scale=False, units=3)) == (
        'free_var %x;\ntest.g(%x, axis=-1, eps=0.1f, scale=False, layout="N\\"C", units=3)')


def test_function_attributes_null_included():
    x = relay.var("x")
    fn = relay.Function([x], x).with_attr({"Primitive": 1, "none": None, "list": ["a", 1, [True]], "f": 1.5})
    assert text(fn) == 'fn (%x, Primitive=1, none=None, list=["a", 1, [True]], f=1.5f) {\n  %x\n}'
    assert ir.structural_equal(parse_expr(fn.astext()), fn)


def test_attributes_of_a_call_that_is_no_operator_name_their_class():
    x = relay.var("x")
    call = relay.Call(relay.GlobalVar("f"), [x], _Attrs(axis=2))
    assert text(call) == 'free_var %x;\n@f(%x, axis=2, attrs_type_key="test.attrs.Print")'
    assert parse_expr(call.astext()).attrs.axis == 2


def test_attributes_not_of_the_operators_class_go_to_the_metadata():
    x = relay.var("x")
    call = relay.Call(ir.Op.get("test.f"), [x], ir.DictAttrs({"k": 1}))
    assert "test.f(%x, meta[DictAttrs][0])" in call.astext()
    assert ir.structural_equal(parse_expr(call.astext()), call, map_free_vars=True)
    assert "test.f(%x, k=1)" in call.astext(show_meta_data=False)


def test_names():
    names = ["x", "x", "", "1", "x1", "base/y", "conv.weight:0"]
    fn = relay.Function([relay.var(n) for n in names], relay.const(1))
    assert text(fn).split("{")[0] == 'fn (%x, %x1, %v, %v1, %x11, %base/y, %"conv.weight:0") '
    read = parse_expr(fn.astext())
    assert read.params[-1].name_hint == "conv.weight:0"


def test_metadata_and_the_note_where_it_is_left_out():
    c = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    program = f(c, c, relay.const(np.zeros(2, "int8")))
    full = program.astext()
    assert "test.f(meta[relay.Constant][0], meta[relay.Constant][0], meta[relay.Constant][1])" in full
    assert ir.structural_equal(parse_expr(full), program)
    assert program.astext(show_meta_data=False).endswith("option to `True` when invoking `astext`. \n */")
    assert str(program) == "test.f(meta[relay.Constant][0], meta[relay.Constant][0], meta[relay.Constant][1])"


def test_types_and_origins_as_comments():
    x = relay.var("x", shape=(2,))
    call = relay.Call(ir.Op.get("test.f"), [x], None, None, relay.Span("Add0", 1, 2, 3, 4))
    call._checked_type = relay.TensorType((2,))
    assert text(relay.Function([x], f(call))) == (
        "fn (%x: Tensor[(2), float32]) {\n  %0 = test.f(%x) /* ty=Tensor[(2), float32] span=Add0:1:3 */;\n  test.f(%0)\n}")


def test_annotate_replaces_the_comments():
    x = relay.var("x")
    assert text(f(x), annotate=lambda e: f"<{type(e).__name__}>") == "free_var %x<Var>;\ntest.f<Op>(%x)<Call>"


def test_modules_sort_by_name_types_first():
    mod = ir.IRModule()
    a, head = relay.TypeVar("A"), relay.GlobalTypeVar("List")
    mod[head] = relay.TypeData(head, [a], [relay.Constructor("Cons", [a, head(a)], head), relay.Constructor("Nil", [], head)])
    xs, rest = relay.Var("xs", head(a)), relay.Var("rest")
    cons, nil = mod.get_type("List")[1:]
    mod["len"] = relay.Function([xs], relay.Match(xs, [
        relay.Clause(relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternVar(rest)]), f(relay.GlobalVar("len")(rest))),
        relay.Clause(relay.PatternConstructor(nil, []), nil())]), relay.scalar_type("int32"), [a])
    mod["f"] = relay.Function([], relay.RefRead(relay.RefCreate(relay.const(1))))
    assert text(mod) == """type List[A] {
  Cons(A, List[A]),
  Nil,
}

def @f() {
  %0 = ref(1);
  ref_read(%0)
}

def @len[A](%xs: List[A]) -> int32 {
  match (%xs) {
    Cons(_, %rest) => {
      %1 = @len(%rest);
      test.f(%1)
    },
    Nil => {
      Nil
    },
  }
}
"""
    assert ir.structural_equal(parse_untyped(mod.astext()), mod)


def test_deep_nesting_keeps_a_bounded_margin():
    x = relay.var("x")
    for _ in range(200):
        x = relay.Function([], x)
    assert max(len(line) - len(line.lstrip()) for line in x.astext().splitlines()) == 128
