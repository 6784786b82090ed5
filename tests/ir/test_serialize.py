"""Programs as JSON and back; damaged text is refused with a reason."""
import json

import numpy as np
import pytest

from anchorleg import ir, relay
from anchorleg.ir import load_json, save_json
from anchorleg.support.errors import ParseError


def module():
    a, head = relay.TypeVar("A"), relay.GlobalTypeVar("L")
    mod = ir.IRModule()
    mod[head] = relay.TypeData(head, [a], [relay.Constructor("C", [a, head(a)], head), relay.Constructor("N", [], head)])
    cons = mod.get_type("L")[1]
    x, v = relay.var("x", shape=(2, relay.Any())), relay.var("v")
    y = x + relay.const(np.arange(3, dtype="float32"))
    body = relay.Match(y, [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(v), relay.PatternWildcard()]),
                                        relay.Tuple([v, relay.If(relay.const(True), y, relay.TupleGetItem(relay.Tuple([y, y]), 1))]))], False)
    mod["main"] = relay.Function([x], relay.Let(relay.var("w"), relay.RefCreate(body), relay.nn.softmax(x, axis=1)))
    mod["main"] = mod["main"].with_attr({"Primitive": 1, "f": float("inf"), "l": ["a", None, [True]], "n": None, "g": relay.GlobalVar("k")})
    return mod


def test_a_module_round_trips():
    mod = module()
    back = load_json(save_json(mod))
    ir.assert_structural_equal(back, mod)
    assert back.get_type("L")[1].tag == mod.get_type("L")[1].tag


def test_sharing_survives():
    x = relay.var("x")
    y = x + x
    back = load_json(save_json(y * y))
    assert back.args[0] is back.args[1] and back.op is ir.Op.get("multiply")


@pytest.mark.parametrize("value", [None, 1.5, "text", (1, "a", None), {"k": relay.TensorType((1, 2)), "j": (1, 2)}, relay.FuncType(
    [relay.TypeVar("a")], relay.RefType(relay.scalar_type("int8")))])
def test_other_values(value):
    assert ir.structural_equal(load_json(save_json(value)), value, map_free_vars=True)


def test_spans_are_kept():
    span = relay.Span("file", 1, 2, 3, 4)
    back = load_json(save_json(relay.Call(ir.Op.get("exp"), [relay.var("x")], None, None, span))).span
    assert (back.source_name.name, back.line, back.end_line, back.column, back.end_column) == ("file", 1, 2, 3, 4)


def test_files_of_upstream_are_read():
    text = """{"root": 1, "nodes": [{"type_key": ""},
      {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "span": "0", "type_annotation": "4", "vid": "2", "virtual_device_": "0"}},
      {"type_key": "relay.Id", "attrs": {"name_hint": "3"}}, {"type_key": "runtime.String", "repr_str": "x"},
      {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "5", "span": "0"}}, {"type_key": "Array", "data": [6]},
      {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "3"}}], "b64ndarrays": [], "attrs": {}}"""
    x = load_json(text)
    assert x.name_hint == "x" and x.type_annotation == relay.TensorType((3,))


def test_every_damage_is_a_parse_error():
    good = json.loads(save_json(module()))
    rng = np.random.default_rng(0)
    texts = ["", "{", "[1]", '{"nodes": 1}', '{"root": 5, "nodes": [{"type_key": ""}]}', '{"root": 1, "nodes": [{"type_key": ""}, 3]}',
             '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Array", "data": [1]}]}',
             '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "no.Such"}]}']
    for _ in range(60):
        bad = json.loads(json.dumps(good))
        row = bad["nodes"][int(rng.integers(1, len(bad["nodes"])))]
        key = list(row)[int(rng.integers(len(row)))]
        row[key] = [None, 10**9, "x", {"node": -1}, [[]]][int(rng.integers(5))]
        texts.append(json.dumps(bad))
    for text in texts:
        try:
            load_json(text)
        except ParseError:
            continue  # refused with a reason; a change that still describes a program is read


def test_deep_programs():
    y = relay.var("x")
    for _ in range(20000):
        y = relay.TupleGetItem(relay.Tuple([y]), 0)
    assert ir.structural_equal(load_json(save_json(y)), y, map_free_vars=True)
