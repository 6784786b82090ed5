"""Loading models: shapes, parameters, names, files, errors."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from anchorleg import relay
from anchorleg.ir.visit import post_order
from anchorleg.relay.frontend import from_onnx
from anchorleg.support.errors import ArgumentError, ParseError, TypeMismatchError, UnsupportedOpError

from .models import model, ours


def f(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def dense(batch: Any = 2) -> Any:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"], name="product"), helper.make_node("Add", ["t", "b"], ["y"])]
    return model(nodes, {"x": f(2, 40)}, ["y"], constants={"w": f(40, 30), "b": f(30)}, shapes={"x": [batch, 40]})


def op_names(mod: Any) -> list[str]:
    return [e.op.name for e in post_order(mod["main"]) if isinstance(e, relay.Call)]


# ---- parameters, shapes, names -------------------------------------------------------------------------------------------

def test_frozen_weights_are_constants_in_their_final_layout() -> None:
    mod, params = from_onnx(dense())
    assert params == {} and [p.name_hint for p in mod["main"].params] == ["x"]
    assert op_names(mod) == ["nn.dense", "add"]


def test_kept_weights_are_parameters() -> None:
    mod, params = from_onnx(dense(), freeze_params=False)
    assert [p.name_hint for p in mod["main"].params] == ["x", "w", "b"] and sorted(params) == ["b", "w"]
    np.testing.assert_allclose(ours(dense(), {"x": f(2, 40)}, freeze_params=False)[0], f(2, 40) @ f(40, 30) + f(30), rtol=1e-4, atol=1e-5)


def test_symbolic_sizes_are_unknown_and_one_object_per_name() -> None:
    proto = model([helper.make_node("Add", ["a", "b"], ["y"])], {"a": f(2, 3), "b": f(2, 3)}, ["y"], shapes={"a": ["n", 3], "b": ["n", "m"]})
    a, b = (p.type_annotation.dims for p in from_onnx(proto)[0]["main"].params)
    assert isinstance(a[0], relay.Any) and a[0] is b[0] and b[1] is not a[0] and a[1] == 3


def test_given_shapes_win() -> None:
    for shape in ({"x": (5, 40)}, [(5, 40)]):
        assert from_onnx(dense("n"), shape=shape)[0]["main"].checked_type.ret_type.dims == (5, 30)
    dims = from_onnx(dense(), shape={"x": (None, 40)})[0]["main"].params[0].type_annotation.dims
    assert isinstance(dims[0], relay.Any)


def test_given_dtypes_win() -> None:
    proto = model([helper.make_node("Abs", ["x"], ["y"])], {"x": f(2)}, ["y"])
    assert from_onnx(proto, dtype={"x": "float64"})[0]["main"].params[0].type_annotation.dtype == "float64"


def test_spans_name_the_nodes_even_nameless_ones() -> None:
    found = {str(e.span) for e in post_order(from_onnx(dense())[0]["main"]) if isinstance(e, relay.Call)}
    assert found == {"product", "Add_0"}


def test_renamed_model_is_written(tmp_path: Path) -> None:
    from_onnx(dense(), export_node_renamed_model_path=tmp_path / "named.onnx")
    assert [n.name for n in onnx.load(tmp_path / "named.onnx").graph.node] == ["product", "Add_0"]


def test_nodes_may_come_in_any_order() -> None:
    proto = dense()
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert op_names(from_onnx(proto)[0]) == ["nn.dense", "add"]


def test_plain_batched_products_on_request() -> None:
    proto = model([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": f(2, 3, 4), "b": f(2, 4, 5)}, ["y"])
    assert op_names(from_onnx(proto)[0]) == ["transpose", "nn.batch_matmul"]
    assert op_names(from_onnx(proto, convert_config={"use_nt_batch_matmul": False})[0]) == ["nn.batch_matmul"]
    with pytest.raises(ArgumentError, match="use_nt_batch_matmul"):
        from_onnx(proto, convert_config={"nt": True})


# ---- shape computations --------------------------------------------------------------------------------------------------

def _flattened_by_shape(dims: Any) -> Any:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
             helper.make_node("Unsqueeze", ["n", "axes"], ["n1"]), helper.make_node("Concat", ["n1", "rest"], ["shape"], axis=0),
             helper.make_node("Reshape", ["x", "shape"], ["y"])]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([6, 2])}
    return model(nodes, {"x": f(2, 3, 4)}, ["y"], constants=constants, shapes={"x": dims})


def test_shape_computations_become_constants() -> None:
    assert op_names(from_onnx(_flattened_by_shape([2, 3, 4]))[0]) == ["reshape"]


def test_shape_computations_known_in_part_give_a_static_reshape() -> None:
    mod, _ = from_onnx(_flattened_by_shape(["n", 3, 4]))
    assert [n for n in op_names(mod) if "reshape" in n] == ["reshape"]
    assert mod["main"].checked_type.ret_type.dims[1:] == (6, 2)


# ---- size ------------------------------------------------------------------------------------------------------------------

def test_a_chain_of_twenty_thousand_nodes() -> None:
    count = 20_000
    nodes = [helper.make_node("Relu" if i % 2 else "Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    mod, _ = from_onnx(model(nodes, {"v0": f(2)}, [f"v{count}"]))
    assert len(op_names(mod)) == count


# ---- files -----------------------------------------------------------------------------------------------------------------

def test_from_a_file_and_from_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(dense(), path)
    want = ours(dense(), {"x": f(2, 40)})[0]
    for source in (path, str(path), path.read_bytes()):
        np.testing.assert_array_equal(ours(source, {"x": f(2, 40)})[0], want)


def test_every_cut_of_a_file_is_an_error(tmp_path: Path) -> None:
    whole = dense().SerializeToString()
    path = tmp_path / "m.onnx"
    for size in (0, 1, 7, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ParseError):
            from_onnx(path)


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x89PNG\r\n" * 50)
    with pytest.raises(ParseError, match="m.onnx"):
        from_onnx(path)
    with pytest.raises(ArgumentError, match="no model file"):
        from_onnx(tmp_path / "absent.onnx")
    with pytest.raises(TypeMismatchError, match="expects a path"):
        from_onnx(3)


def _external(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(dense(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def test_external_data(tmp_path: Path) -> None:
    np.testing.assert_array_equal(ours(_external(tmp_path), {"x": f(2, 40)})[0], ours(dense(), {"x": f(2, 40)})[0])


def test_external_data_that_is_missing_or_cut(tmp_path: Path) -> None:
    path, data = _external(tmp_path), tmp_path / "weights.bin"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(ParseError, match="truncated"):
        from_onnx(path)
    data.unlink()
    with pytest.raises(ArgumentError, match="weights.bin"):
        from_onnx(path)
    with pytest.raises(ArgumentError, match="path of the model"):
        from_onnx(onnx.load(path, load_external_data=False))


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "inner/../../secret.bin"])
def test_external_data_stays_in_the_models_folder(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(10000))
    folder = tmp_path / "model"
    folder.mkdir()
    path = _external(folder)
    proto = onnx.load(path, load_external_data=False)
    for tensor in proto.graph.initializer:
        tensor.external_data[0].value = location
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ArgumentError, match="outside of the model's folder"):
        from_onnx(path)


def test_a_weight_of_the_wrong_size() -> None:
    proto = dense()
    proto.graph.initializer[0].raw_data = b"\0" * 12
    with pytest.raises(ParseError, match="'w'.*needs 4800 bytes"):
        from_onnx(proto)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool", "float64", "uint16"])
def test_tensors_of_each_type_stored_in_fields(dtype: str) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    value = np.array([0, 1, 3]).astype(kind)
    tensor = helper.make_tensor("c", helper.np_dtype_to_tensor_dtype(kind), [3], value.tolist())
    proto = model([helper.make_node("Identity", ["c"], ["y"])], {}, ["y"])
    proto.graph.initializer.append(tensor)
    np.testing.assert_array_equal(ours(proto, {})[0], value)


# ---- errors ----------------------------------------------------------------------------------------------------------------

def test_all_unsupported_operators_are_named_at_once() -> None:
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["a"], name="noise"), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Warp", ["b"], ["c"], domain="acme", name="w1"), helper.make_node("Warp", ["c"], ["y"], domain="acme", name="w2")]
    with pytest.raises(UnsupportedOpError) as info:
        from_onnx(model(nodes, {"x": f(2)}, ["y"], domains=[("acme", 3)]))
    text = str(info.value)
    assert "3 nodes" in text and "RandomNormalLike (version 17 of ai.onnx): 1 node: 'noise'" in text
    assert "Warp (version 3 of acme): 2 nodes: 'w1', 'w2'" in text


def test_a_branch_not_taken_may_hold_anything() -> None:
    def graph(op: str, out: str) -> Any:
        return helper.make_graph([helper.make_node(op, ["x"], [out])], op, [], [helper.make_tensor_value_info(out, 1, None)])

    node = helper.make_node("If", ["c"], ["y"], then_branch=graph("Neg", "p"), else_branch=graph("RandomNormalLike", "q"))
    assert op_names(from_onnx(model([node], {"x": f(2)}, ["y"], constants={"c": np.array(True)}))[0]) == ["negative"]
    with pytest.raises(UnsupportedOpError, match="RandomNormalLike"):
        from_onnx(model([node], {"x": f(2)}, ["y"], constants={"c": np.array(False)}))


def test_dangling_names() -> None:
    with pytest.raises(ParseError, match="'lost'.*uses 'nowhere'"):
        from_onnx(model([helper.make_node("Relu", ["nowhere"], ["y"], name="lost")], {"x": f(2)}, ["y"]))
    with pytest.raises(ParseError, match="no node makes the output 'z'"):
        from_onnx(model([helper.make_node("Relu", ["x"], ["y"])], {"x": f(2)}, ["z"]))


def test_a_cycle() -> None:
    nodes = [helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(ParseError, match="cycle"):
        from_onnx(model(nodes, {"x": f(2)}, ["b"]))


def test_errors_name_the_node_its_operator_and_its_inputs() -> None:
    node = helper.make_node("Add", ["x", "b"], ["y"], name="sum")
    with pytest.raises(TypeMismatchError) as info:
        from_onnx(model([node], {"x": f(2, 3)}, ["y"], constants={"b": f(4)}))
    text = str(info.value)
    assert "'sum' (Add, version 17 of ai.onnx)" in text and "Tensor[(2, 3), float32]" in text and "Tensor[(4,), float32]" in text


def test_missing_attributes_and_inputs() -> None:
    with pytest.raises(ArgumentError, match="'n' .*MaxPool.*kernel_shape"):
        from_onnx(model([helper.make_node("MaxPool", ["x"], ["y"], name="n")], {"x": f(1, 1, 4, 4)}, ["y"]))
    with pytest.raises(ArgumentError, match="input 1 is missing"):
        from_onnx(model([helper.make_node("Conv", ["x", ""], ["y"], name="n")], {"x": f(1, 1, 4, 4)}, ["y"]))


def test_wrong_names_in_shape_and_dtype() -> None:
    with pytest.raises(ArgumentError, match="no input named 'images'; its inputs are: 'x'"):
        from_onnx(dense(), shape={"images": (1, 3)})
    with pytest.raises(ArgumentError, match="no input named 'z'"):
        from_onnx(dense(), dtype={"z": "int8"})


def test_inputs_that_are_no_tensors_or_have_no_rank() -> None:
    proto = model([helper.make_node("Identity", ["x"], ["y"])], {"x": f(2)}, ["y"])
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ArgumentError, match="how many dimensions"):
        from_onnx(proto)
    assert from_onnx(proto, shape={"x": (2,)})[0]["main"].checked_type.ret_type.dims == (2,)
    proto.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])))
    with pytest.raises(UnsupportedOpError, match="'x' is a sequence"):
        from_onnx(proto)


def test_a_function_that_calls_itself() -> None:
    function = helper.make_function("my", "F", ["x"], ["y"], [helper.make_node("F", ["x"], ["y"], domain="my")], [helper.make_opsetid("my", 1)])
    node = helper.make_node("F", ["x"], ["y"], domain="my")
    with pytest.raises(ParseError, match="calls itself"):
        from_onnx(model([node], {"x": f(2)}, ["y"], domains=[("my", 1)], functions=[function]))


def test_a_weight_used_twice_is_stored_once() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])]
    mod, _ = from_onnx(model(nodes, {"x": f(2, 4)}, ["y"], constants={"w": f(4, 4)}))
    assert len({id(e) for e in post_order(mod["main"]) if isinstance(e, relay.Constant)}) == 1




def test_repeating_pixels_needs_no_sizes() -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")
    proto = model([node], {"x": f(1, 2, 3, 4)}, ["y"], 13, {"s": np.array([1, 1, 2, 3], np.float32)}, {"x": [1, 2, "h", "w"]})
    np.testing.assert_array_equal(ours(proto, {"x": f(1, 2, 3, 4)})[0], f(1, 2, 3, 4).repeat(2, 2).repeat(3, 3))


def test_sizes_of_a_computed_shape_that_are_numbers_are_told() -> None:
    """A shape from another input's sizes: what stays a number is in the type, so that products after it know how long their rows are."""
    from onnx import numpy_helper

    import anchorleg
    from anchorleg.runtime.vm import VirtualMachine

    nodes = [helper.make_node("Shape", ["like"], ["sizes"]), helper.make_node("Concat", ["sizes", "rest"], ["shape"], axis=0),
             helper.make_node("Reshape", ["x", "shape"], ["y"])]
    ins = [helper.make_tensor_value_info("x", 1, ["a", "b", 24]), helper.make_tensor_value_info("like", 1, ["p", "q"])]
    graph = helper.make_graph(nodes, "g", ins, [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(np.array([-1, 8]), "rest")])
    mod, params = relay.frontend.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    result = relay.transform.InferType()(mod)["main"].ret_type
    assert result.dims[-1] == 8 and not any(isinstance(d, int) for d in result.dims[:-1])
    x = np.arange(2 * 3 * 24, dtype=np.float32).reshape(2, 3, 24)
    got = VirtualMachine(relay.vm.compile(mod, "llvm", params=params), anchorleg.cpu(0)).invoke("main", x, np.zeros((3, 2), np.float32)).numpy()
    np.testing.assert_array_equal(got, x.reshape(3, 2, 3, 8))
