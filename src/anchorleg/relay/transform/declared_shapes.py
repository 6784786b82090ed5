"""Sizes by shape functions that users declared: how ManifestAlloc calls them.

before::

    fn (%p, Primitive=1) { their_op(%p) }(%x)          # the sizes of the result are not known

after::

    let %sizes = vm.shape_of(%x);
    let %shape = memory.alloc_tensor(…);                                   # a vector of int64
    let %_ = vm.invoke_tvm_op(fn (%s, Primitive=1) { vm.output_shapes(%s) }, (%sizes,), (%shape,));
    … memory of this shape, and the call of their_op
"""
from __future__ import annotations

from typing import Any, Sequence

from ...ir.attrs import DictAttrs
from ...ir.expr import RelayExpr
from ...ir.type import FuncType, TensorType, TupleType, Type
from ..expr import Call, Tuple, TupleGetItem, Var
from ..function import Function
from ..op import vm
from ..op.shape_func.declared import Declared, declared, input_types, ranks_of
from ..op.shape_func.dims import Dim, DimTable
from ..op.shape_func.program import assemble
from ..op.shape_func.registry import Known


def shape_function(call: Call, found: Declared) -> Function:
    """The primitive function of a call's declared shape function, over the arguments or sizes that it reads."""
    params = []
    for i, ty in enumerate(input_types(call, found)):
        params.append(Var(f"s{i}", ty))
        params[-1]._checked_type = ty
    ranks = ranks_of(call.checked_type)
    body = vm.output_shapes(call, params, ranks)
    types = [TensorType([r], "int64") for r in ranks]
    body._checked_type = types[0] if len(types) == 1 else TupleType(types)
    func = Function(params, body, body._checked_type, (), DictAttrs({"Primitive": 1}))
    func._checked_type = FuncType([p._checked_type for p in params], body._checked_type)
    return func


def declared_shapes(manifest: Any, func: Function, args: Sequence[RelayExpr], results: Sequence[Known], scope: Any) -> list[Var] | None:
    """Variables that hold the results' shapes where ``func`` calls one operator with a declared shape function; else None."""
    call = func.body
    found = declared(call)
    if found is None:
        return None
    atoms = {id(p): a for p, a in zip(func.params, args)}
    inputs: list[RelayExpr] = []
    for arg, elements in zip(call.args, found.reads_elements):  # type: ignore[attr-defined]
        atom = atoms.get(id(arg)) or manifest.atoms([arg], scope)[0]
        inputs += [t if elements else _sizes(manifest, t, scope) for t in tensors_of(manifest, atom, arg.checked_type, scope)]
    outs = [manifest.fixed(TensorType([len(k.dims)], "int64"), scope) for k in results]
    special = shape_function(call, found)  # type: ignore[arg-type]
    manifest.let(scope, "_shape", vm.invoke_tvm_op(special, typed_tuple(inputs), typed_tuple(outs)), TupleType([]))
    _check_known(manifest, call.op.name, results, outs, scope)  # type: ignore[attr-defined]
    for known, out in zip(results, outs):
        manifest.facts.bind(out, [Known((len(known.dims),), "int64", known.dims)])
    return outs


def typed_tuple(fields: Sequence[RelayExpr]) -> Tuple:
    """A tuple that has its type."""
    new = Tuple(fields)
    new._checked_type = TupleType([f.checked_type for f in fields])
    return new


def _check_known(manifest: Any, name: str, results: Sequence[Known], outs: Sequence[Var], scope: Any) -> None:
    """Sizes that the program's types tell must be what the function gives: compiled code counts on them."""
    table = DimTable()
    checks = [(table.equal(table.atom("val", k, i), d), f"{name}: the declared shape function gives another size than the {d} of the program's type")
              for k, known in enumerate(results) for i, d in enumerate(known.dims) if isinstance(d, int)]
    if checks:
        let_checks(manifest, table, checks, outs, 1, scope)


def let_checks(manifest: Any, table: DimTable, checks: Sequence[tuple[Dim, str]], tensors: Sequence[RelayExpr], by_value: int, scope: Any) -> None:
    """Binds a shape function that gives nothing and makes ``checks``, over the sizes (``by_value`` 1: the elements) of ``tensors``."""
    params = [Var(f"t{k}", t.checked_type) for k, t in enumerate(tensors)]
    for p in params:
        p._checked_type = p.type_annotation
    nothing = Function(params, typed_tuple([]), TupleType([]), (), DictAttrs({"Primitive": 1}))
    program = assemble(table, [], checks)
    manifest.let(scope, "_checks", vm.shape_func(nothing, typed_tuple(tensors), typed_tuple([]), [by_value] * len(tensors), program), TupleType([]))


def _sizes(manifest: Any, tensor: RelayExpr, scope: Any) -> Var:
    known = manifest.facts.known[id(tensor)][0]
    var = manifest.let(scope, "sizes", vm.shape_of(tensor), TensorType([len(known.dims)], "int64"))
    manifest.facts.bind(var, [Known((len(known.dims),), "int64", known.dims)])
    return var


def tensors_of(manifest: Any, atom: RelayExpr, ty: Type, scope: Any) -> list[RelayExpr]:
    """The tensors in an atom; fields of tuples get variables."""
    if not isinstance(ty, TupleType):
        return [atom]
    found = []
    for i, field in enumerate(ty.fields):
        value = TupleGetItem(atom, i)
        var = manifest.let(scope, "field", value, field)
        manifest.facts.bind(var, manifest.facts.evaluate(value))
        found += tensors_of(manifest, var, field, scope)
    return found


__all__ = ["declared_shapes", "shape_function", "tensors_of"]
