"""Operators defined by a body of other operators: functions of the model, and those of the ONNX specification."""
from __future__ import annotations

from typing import Any, Sequence

from ....ir.type import TensorType


def local_functions(model: Any) -> dict[tuple[str, str], Any]:
    """The model's own functions by (domain, name)."""
    from .registry import domain_of

    return {(domain_of(f.domain), f.name): f for f in model.functions}


_NO_USE = frozenset({"Bernoulli", "SequenceMap"})  # their bodies need random numbers, or loops over sequences


def has_body(domain: str, op_type: str, version: int) -> bool:
    """Whether the specification defines the operator by a body of others."""
    schema = _schema(domain, op_type, version) if op_type not in _NO_USE else None
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def body_of(domain: str, version: int, node: Any, types: Sequence[Any]) -> Any:
    """The FunctionProto that the specification gives for ``node``; None when there is none for these input types."""
    import onnx

    schema = _schema(domain, node.op_type, version)
    if schema is None:
        return None
    if schema.has_function:
        return schema.function_body
    if not schema.has_context_dependent_function:
        return None
    described = [_type_proto(t).SerializeToString() for t in types]
    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    found = schema.get_context_dependent_function(plain.SerializeToString(), described)
    return onnx.FunctionProto.FromString(found) if found else None


def _schema(domain: str, op_type: str, version: int) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _type_proto(t: Any) -> Any:
    import onnx

    if not isinstance(t, TensorType):
        return onnx.TypeProto()
    from ....runtime.dtype import numpy_dtype

    code = onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(t.dtype))
    return onnx.helper.make_tensor_type_proto(code, [d if isinstance(d, int) else None for d in t.dims])
