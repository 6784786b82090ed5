"""The text format as it is read: every construct, round trips, and errors that show the place."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorleg import ir, relay
from anchorleg.ir.attrs import INT, OPT_INT, STR, Attrs, Field
from anchorleg.ir.op import register_op
from anchorleg.relay.text.parser import parse_expr, parse_untyped
from anchorleg.support.errors import ParseError

HEADER = '#[version = "0.0.5"]\n'


class _Attrs(Attrs, name="test.attrs.Parse"):
    units = Field(OPT_INT, None)
    layout = Field(STR, "NCHW")
    axis = Field(INT, -1)


for _name in ("test.f", "add", "subtract", "multiply", "divide", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    register_op(_name)
register_op("test.h").attrs_type = _Attrs


def op(name, *args):
    return relay.Call(ir.Op.get(name), args)


def reads_as(code, expected):
    found = parse_expr(code)
    ir.assert_structural_equal(found, expected, map_free_vars=True)
    ir.assert_structural_equal(parse_expr(found.astext()), found, map_free_vars=True)


def value(code):
    const = parse_expr(code)
    return const.data.numpy().item(), str(const.data.dtype)


@pytest.mark.parametrize("code, expected", [
    ("-42i16", (-42, "int16")), ("-42i64", (-42, "int64")), ("-42i", (-42, "int32")), ("2147483647", (2147483647, "int32")),
    ("2147483648", (2147483648, "int64")), ("-2147483648", (-2147483648, "int32")), ("9223372036854775807", (2**63 - 1, "int64")),
    ("3f16", (3.0, "float16")), ("1.5f", (1.5, "float32")), ("1E-1f64", (0.1, "float64")), ("-05", (-5, "int32")), ("--10", (10, "int32")),
    ("---10", (-10, "int32")), ("inff", (float("inf"), "float32")), ("-inff16", (float("-inf"), "float16")), ("True", (True, "bool"))])
def test_literals(code, expected):
    assert value(code) == expected


@pytest.mark.parametrize("code, message", [
    ("2147483648i32", "does not fit int32"), ("32768i16", "does not fit int16"), ("9223372036854775808", "does not fit int64"),
    ("65505f16", "does not fit float16"), ("3.40283e+38f32", "does not fit float32"), ("1i8", "16, 32 or 64 bits"),
    ("let x = 1; 1", "1:5: expected a variable, found a name 'x'"), ("let @x = 1; ()", "1:5: expected a variable"),
    ("%y", "the variable %y is not defined here"), ("%3", "graph variable %3 has not been defined"),
    ("test.f(1", "1:9: expected ')' or ',', found the end of the text"), ("1 2", "1:3: expected ';', an operator or the end"),
    ("if (True) { let %x = 1; %x } else { %x }", "1:37: the variable %x"), ("meta[relay.Constant][7]", "no entry 'relay.Constant'"),
    ("test.unknown(1)", "'test.unknown' is not registered"), ("test.h(1, nope=2)", "no attribute named nope"),
    ("test.f(1, axis=2)", "has no attributes"), ("test.h(1, axis=2, axis=3)", "given twice"), ("test.h(1, axis=\"x\")", "expects int"),
    ("fn (%x: int33) { %x }", "unknown data type 'int33'"), ("/* no end", "comment without an end"), ("\"no end", "string without an end"),
    ("fn (%x: Tensor[(1.5f), int8]) { %x }", "a whole number"), ("match (1) { Foo => 1 }", "no constructor is named Foo"),
    ("$", "no meaning here"), ("-%x", "expected a number after '-'"), ("(1 2)", "expected ',' or ')'"), ("", "expected an expression")])
def test_errors_name_the_place_and_what_was_expected(code, message):
    with pytest.raises(ParseError) as info:
        parse_expr(code)
    assert message in str(info.value)
    assert str(info.value).splitlines()[-1].strip() == "^"


def test_an_error_shows_its_line_with_a_caret_under_the_place():
    with pytest.raises(ParseError) as info:
        parse_untyped(HEADER + "def @main(%x) {\n  add(%x, ;\n}", "prog.txt")
    assert str(info.value) == "prog.txt:3:11: expected an expression, found ';'\n3 |   add(%x, ;\n              ^"


@pytest.mark.parametrize("code, message", [
    ("def @f() { 1 }", "begin with #[version"), ('#[version = "0.0.4"]', "not \"0.0.4\""),
    (HEADER + "def @f() { 1 } def @f() { 1 }", "@f is defined twice"), (HEADER + "type A { X } type B { X }", "constructor named X is already"),
    (HEADER + "extern type T { X }", "no constructors"), (HEADER + "fn () { 1 }", "expected 'def'"),
    (HEADER + "def @f() { 1 }\n#[metadata]\n{", "metadata section cannot be read"), (HEADER + "def @f() { 1 }\n#[metadata]\n[1]", "cannot be read")])
def test_module_errors(code, message):
    with pytest.raises(ParseError) as info:
        parse_untyped(code)
    assert message in str(info.value)


def test_infix_operators_and_precedence():
    one = relay.const(1)
    for sign, name in (("*", "multiply"), ("/", "divide"), ("+", "add"), ("-", "subtract"), ("<", "less"), ("<=", "less_equal"),
                       (">", "greater"), (">=", "greater_equal"), ("==", "equal"), ("!=", "not_equal")):
        reads_as(f"1 {sign} 1", op(name, one, one))
    same = [("1 * 2 + 3 < 4 == 5", "(((1 * 2) + 3) < 4) == 5"), ("1 == 2 < 3 + 4 * 5", "1 == (2 < (3 + (4 * 5)))"),
            ("1 - 2 - 3", "(1 - 2) - 3"), ("1 * 2 < 3 + 4 * 5", "(1 * 2) < (3 + (4 * 5))"), ("1 -1", "1 - 1"), ("2 * -1", "2 * (-1)")]
    for a, b in same:
        assert ir.structural_equal(parse_expr(a), parse_expr(b))
    assert not ir.structural_equal(parse_expr("1 * 1 + 1"), parse_expr("1 * (1 + 1)"))


def test_statements():
    x, unit = relay.var("x"), relay.Tuple([])
    reads_as("let %x = 1; ()", relay.Let(x, relay.const(1), unit))
    reads_as("(); ()", relay.Let(relay.var("_"), unit, unit))
    reads_as("%0 = (); %1 = 1; (%0, %0, %1)", relay.Tuple([unit, unit, relay.const(1)]))
    reads_as("let %x : _ = (); ()", relay.Let(x, unit, unit))
    reads_as("// one\n/* two /* three */ */ ()", unit)


def test_variables_mean_the_innermost_binding():
    e = parse_expr("let %x = 1; let %x = (%x, 2); fn (%x) { %x }(%x)")
    assert e.body.value.fields[0] is e.var
    loop = parse_expr("let %f = 1; let %f = fn () { %f() }; %f").body
    assert loop.value.body.op is loop.var
    assert e.body.body.args[0] is e.body.var
    assert e.body.body.op.body is e.body.body.op.params[0]


def test_a_graph_variable_may_be_defined_anew():
    assert parse_expr("%0 = 1; %1 = (%0,); %0 = 2; (%1, %0)").fields[1].data.numpy() == 2


def test_tuples_projections_and_calls():
    x = relay.Var("x", relay.scalar_type("float32"))
    reads_as("free_var %x: float32; %x((%x,).0, %x)", relay.Call(x, [relay.TupleGetItem(relay.Tuple([x]), 0), x]))
    reads_as("((1, 2), 3).0.1", relay.TupleGetItem(relay.TupleGetItem(relay.Tuple([relay.Tuple([relay.const(1), relay.const(2)]),
                                                                                 relay.const(3)]), 0), 1))
    reads_as("fn (%x) { %x }(0)", relay.Call(relay.Function([x2 := relay.var("x")], x2), [relay.const(0)]))
    reads_as("test.f(1)(2)", relay.Call(op("test.f", relay.const(1)), [relay.const(2)]))


def test_functions_conditions_and_references():
    a, x = relay.TypeVar("A"), None
    x = relay.Var("x", a)
    reads_as("fn [A](%x: A, n=5, s=\"t\") -> A { %x }", relay.Function([x], x, a, [a], ir.DictAttrs({"n": 5, "s": "t"})))
    reads_as("if (True) { 0 } else if (False) { 1 } else { 2 }",
             relay.If(relay.const(True), relay.const(0), relay.If(relay.const(False), relay.const(1), relay.const(2))))
    reads_as("%0 = ref(1); ref_write(%0, ref_read(%0))", relay.RefWrite(r := relay.RefCreate(relay.const(1)), relay.RefRead(r)))
    reads_as("%0 = match (1) { _ => 2 }; %0", relay.Match(relay.const(1), [relay.Clause(relay.PatternWildcard(), relay.const(2))]))


@pytest.mark.parametrize("code", ["int8", "uint1x4", "float16x4", "bool", "bfloat16", "Tensor[(), float32]", "Tensor[(?, 1, 3i64), int8]",
                                  "fn () -> int32", "fn [A](A, (A,)) -> ref(A)", "()", "(int8, (bool,))", "List[Tensor[(1), int8], int8]"])
def test_types(code):
    fn = parse_expr(f"fn (%x: {code}) {{ () }}")
    again = parse_expr(f"fn (%x: {fn.params[0].type_annotation}) {{ () }}")
    assert ir.structural_equal(fn, again)


def test_data_types_and_matching():
    mod = parse_untyped(HEADER + """
        type List[A] { Cons(A, List[A]), Nil }
        extern type T[A]
        def @len[A](%xs: List[A]) -> int32 {
          match? (%xs) { Cons(_, %rest : List[A]) => { (); 1 + @len(%rest) }, Nil => 0, }
        }
        def @one() { Cons(1, Nil) }
        def @two() { Cons }""")
    head, cons, nil = mod.get_type("List")
    assert [c.name_hint for c in (cons, nil)] == ["Cons", "Nil"] and cons.inputs[1].func is head
    match = mod["len"].body
    assert not match.complete and match.clauses[0].lhs.constructor is cons
    assert match.clauses[0].rhs.body.args[1].op is mod.get_global_var("len")
    assert isinstance(mod["one"].body.args[1], relay.Call) and mod["two"].body is cons
    assert ir.structural_equal(parse_untyped(mod.astext()), mod)


def test_attributes_take_the_operators_class_defaults_filled_in():
    call = parse_expr('free_var %x; test.h(%x, layout="NHWC")')
    assert (call.attrs.layout, call.attrs.axis, call.attrs.units) == ("NHWC", -1, None)
    assert parse_expr("free_var %x; test.h(%x, units=None)").attrs.units is None
    assert parse_expr("free_var %x; test.h(%x)").attrs.axis == -1


def test_strings_with_every_escape():
    odd = 'a"b\\c\n\t\r é'
    fn = relay.Function([], relay.const(1)).with_attr("s", odd)
    assert parse_expr(fn.astext()).attrs["s"] == odd


def test_a_module_to_build_on_and_extra_metadata():
    base = parse_untyped(HEADER + "type Box { B(int8) } def @f(%y) { %y }")
    const = relay.const(np.ones((2, 3), "float32"))
    mod = parse_untyped(HEADER + "def @main(%x) { test.f(@f(%x), meta[relay.Constant][0], B) }", "s", base, {"relay.Constant": [const]})
    assert sorted(g.name_hint for g in mod.functions) == ["f", "main"] and len(base.functions) == 1
    assert mod["main"].body.args[0].op is base.get_global_var("f") and mod["main"].body.args[1] is const


def test_spans_say_where_an_expression_stands():
    call = parse_expr("free_var %x;\n  test.f(%x,\n    1)")
    assert (call.span.line, call.span.column, call.span.end_line, call.span.end_column) == (2, 3, 3, 7)
    assert call.args[1].span.line == 3


DEPTH = 20000


@pytest.mark.parametrize("code", [
    "(" * DEPTH + "1" + ")" * DEPTH, " + ".join(["1"] * DEPTH), "test.f(" * DEPTH + "1" + ")" * DEPTH,
    "let %x = 1;\n" * DEPTH + "%x", "(1,\n" * DEPTH + "1" + ")" * DEPTH, "if (True) {" * DEPTH + "1" + "} else {2}" * DEPTH,
    "%0 = 1;\n" + "".join(f"%{i + 1} = test.f(%{i});\n" for i in range(DEPTH)) + f"%{DEPTH}",
    "fn () {" * DEPTH + "1" + "}" * DEPTH, "fn (%x: " + "(" * DEPTH + "int8" + ",)" * DEPTH + ") {1}"],
    ids=["parens", "infix", "calls", "lets", "tuples", "ifs", "lines", "functions", "types"])
def test_twenty_thousand_levels(code):
    assert parse_expr(code) is not None


@pytest.mark.parametrize("build", [
    lambda e, x: op("test.f", e), lambda e, x: op("test.f", e, e), lambda e, x: relay.If(x, e, x), lambda e, x: relay.Function([], e),
    lambda e, x: relay.Let(relay.var("v"), x, e), lambda e, x: relay.Let(relay.var("v"), e, x),
    lambda e, x: relay.Match(e, [relay.Clause(relay.PatternWildcard(), x)]), lambda e, x: relay.RefRead(relay.RefCreate(e)),
    lambda e, x: relay.TupleGetItem(relay.Tuple([e, x]), 0)],
    ids=["calls", "shared calls", "ifs", "functions", "let bodies", "let values", "matches", "references", "tuples"])
def test_round_trip_of_deep_programs(build):
    x = e = relay.var("x")
    for _ in range(5000):
        e = build(e, x)
    assert ir.structural_equal(parse_expr(e.astext()), e, map_free_vars=True)


@st.composite
def programs(draw):
    """Random programs: expressions built from earlier ones, so that sharing and nesting of every kind occur."""
    x = relay.Var("x", relay.TensorType((2, relay.Any()), "float32"))
    outer = [x, relay.var("free"), relay.const(draw(st.floats(allow_nan=False, width=32))), relay.const(np.arange(3, dtype="uint8"))]
    pool = list(outer)
    pick = lambda: pool[draw(st.integers(0, len(pool) - 1))]  # noqa: E731
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 8))
        var = relay.var(draw(st.sampled_from(["x", "y", "", "a.b"])))
        if kind == 0:
            made = op("test.f", pick(), pick())
        elif kind == 1:
            made = relay.Call(ir.Op.get("test.h"), [pick()], _Attrs(axis=draw(st.integers(-2, 2))))
        elif kind == 2:
            made = relay.Tuple([pick() for _ in range(draw(st.integers(0, 3)))])
        elif kind == 3:
            made = relay.TupleGetItem(pick(), draw(st.integers(0, 2)))
        elif kind == 4:
            made = relay.If(pick(), pick(), pick())
        elif kind == 5:
            made = relay.Let(var, pick(), op("test.f", var, pick()))
        elif kind == 6:
            made = relay.Function([var], relay.Tuple([var, pick()]), attrs=ir.DictAttrs({"k": draw(st.integers(0, 1))}))
        elif kind == 7:
            made = relay.Match(pick(), [relay.Clause(relay.PatternTuple([relay.PatternVar(var), relay.PatternWildcard()]),
                                                     op("test.f", var, pick()))], draw(st.booleans()))
        else:
            made = relay.Call(pick(), [pick()])
        pool.append(made)
    return relay.Function([x], pool[-1])


@settings(max_examples=150, deadline=None)
@given(programs())
def test_round_trip_of_random_programs(program):
    ir.assert_structural_equal(parse_expr(program.astext()), program, map_free_vars=True)


def test_dense_without_units_survives_the_round_trip():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3, 3))
    mod = relay.transform.InferType()(ir.IRModule.from_expr(relay.Function([x, y], relay.nn.dense(x, y))))
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    assert parse_expr("free_var %x; free_var %y; nn.dense(%x, %y)").attrs.units is None


def test_layouts_given_as_strings_type_check():
    mod = relay.parse(HEADER + """def @main(%x: Tensor[(1, 32, 32, 3), float32], %y: Tensor[(1, 1, 3, 3), float32]) {
      nn.conv2d(%x, %y, data_layout="NHWC", kernel_layout="HWIO", kernel_size=[1, 1], channels=3) }""")
    call = mod["main"].body
    assert (call.attrs.data_layout, call.attrs.kernel_layout) == ("NHWC", "HWIO")
    assert call.checked_type.concrete_shape == (1, 32, 32, 3)


def test_clip_to_infinity():
    x = relay.var("x", shape=(3, 4))
    mod = ir.IRModule.from_expr(relay.Function([x], relay.clip(x, -np.inf, np.inf)))
    annotated = relay.transform.AnnotateSpans()(mod)
    assert annotated["main"].body.span is not None
    ir.assert_structural_equal(annotated, relay.transform.InferType()(mod))
