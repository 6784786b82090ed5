"""From an ONNX model to a Relay module."""
from __future__ import annotations

import functools
import os
from typing import Any, Callable, Sequence

from ....ir.expr import RelayExpr
from ....ir.module import IRModule
from ....ir.span import Span
from ....ir.type import TensorType
from ....runtime.ndarray import NDArray
from ....support.errors import AnchorlegError, ArgumentError, ParseError, UnsupportedOpError
from ...expr import Constant, Tuple, Var
from ...function import Function
from ...op.type_relations import show
from ...transform.infer_type import infer_module, infer_type
from .branches import Fork, Outcome, fork_of, kept_leaves, leaves
from .builder import Builder
from .context import NodeContext
from .external import read_range
from .functions import body_of, has_body, local_functions
from .inputs import InputTypes
from .lists import Lists
from .model_file import Model, open_model
from .registry import domain_of, find
from .scope import Scope, count_uses, name_nodes, needed_names, ordered, subgraphs
from .tensors import attribute_value, numpy_dtype_of, sparse_value, tensor_value

DEFAULT_CONFIG: dict[str, Any] = {"use_nt_batch_matmul": True, "unroll_limit": 4096}
_MAX_NESTING = 64  # of functions that call functions: more is a function that calls itself
_MAX_WAYS = 256  # places where a branch makes the rest of its graph be converted twice


class Unsupported:
    """Operators that cannot be imported, and the nodes that use them."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, str, int], list[str]] = {}

    def add(self, domain: str, op_type: str, version: int, name: str) -> None:
        """Notes a node."""
        self.nodes.setdefault((domain, op_type, version), []).append(name)

    def check(self) -> None:
        """UnsupportedOpError naming everything noted, if anything is."""
        if not self.nodes:
            return
        count = sum(map(len, self.nodes.values()))
        lines = [f"  {op} (version {version} of {domain or 'ai.onnx'}): {len(names)} node{'s' if len(names) > 1 else ''}: "
                 + ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")
                 for (domain, op, version), names in sorted(self.nodes.items())]
        raise UnsupportedOpError(f"{count} node{'s' if count > 1 else ''} of the model use{'' if count > 1 else 's'} "
                                 f"{len(lines)} operator{'s' if len(lines) > 1 else ''} that cannot be imported:\n" + "\n".join(lines)
                                 + "\nexport the model without them (another opset version, or other layers), or cut these nodes out with onnx.utils.extract_model")


class GraphImporter:
    """Converts the nodes of one model."""

    def __init__(self, model: Model, opset: int | None, freeze_params: bool, config: dict[str, Any]) -> None:
        self.model, self.config, self.freeze = model, config, freeze_params
        self.builder = Builder()
        self.functions = local_functions(model.proto)
        self.opsets = {domain_of(o.domain): o.version for o in model.proto.opset_import}
        if opset is not None:
            self.opsets[""] = opset
        self.params: dict[str, NDArray] = {}
        self.param_vars: dict[str, Var] = {}
        self.nesting = 0
        self.ways = 0  # places where the conversion went two ways

    @functools.cached_property
    def lists(self) -> Lists:
        """Lists, for sequences whose length is not known; made when there is one."""
        return Lists()

    # -- the whole model -------------------------------------------------------------------------------

    def run(self, shape: Any, dtype: Any) -> tuple[Function, dict[str, NDArray]]:
        """The model's main function, and the parameters that stay variables."""
        graph = self.model.proto.graph
        scope = Scope(opsets=self.opsets)
        self.initializers(graph, scope, self.model.places)
        inputs = self._inputs(graph, scope, shape, dtype)
        self.check_supported(graph.node, scope)
        scope.uses = count_uses(graph.node, (o.name for o in graph.output))
        outcome = self.run_graph(graph, scope)
        self.builder.span = Span("outputs")
        outputs = self._one_outcome(outcome, graph)
        body = outputs[0] if len(outputs) == 1 else self.builder.settle([Tuple(outputs)])[0]
        return Function([*inputs, *self.param_vars.values()], body), self.params

    def _one_outcome(self, outcome: Outcome, graph: Any) -> list[RelayExpr]:
        """The model's results: where ways differ in kind, of those that give what the model declares."""
        if not isinstance(outcome, Fork):
            return outcome
        ranks = [len(o.type.tensor_type.shape.dim) if o.type.tensor_type.HasField("shape") else None for o in graph.output]
        found = kept_leaves(outcome, lambda leaf: self._has_ranks(leaf, ranks), self.builder)
        if found is not None and not isinstance(found, Fork):
            return found
        first, other = ([show(self.builder.type_of(e)) for e in leaf] for leaf in leaves(outcome)[:2])
        raise UnsupportedOpError("the model's results have other numbers of dimensions or element types when its branches go another way: "
                                 f"({', '.join(first)}) or ({', '.join(other)})")

    def _has_ranks(self, leaf: list[RelayExpr], ranks: list[int | None]) -> bool:
        types = [self.builder.type_of(e) for e in leaf]
        return all(r is None or isinstance(t, TensorType) and len(t.dims) == r for t, r in zip(types, ranks))

    def _inputs(self, graph: Any, scope: Scope, shape: Any, dtype: Any) -> list[Var]:
        infos = [i for i in graph.input if i.name not in scope.lazy]
        types = InputTypes([i.name for i in infos], shape, dtype)
        found = []
        for info in infos:
            var = Var(info.name, types.type_of(info), Span(info.name))
            infer_type(var)
            scope.define(info.name, var)
            found.append(var)
        return found

    def initializers(self, graph: Any, scope: Scope, places: dict[int, tuple[int, int]] | None = None) -> None:
        """Makes the graph's initializers known; they are read when first used."""
        for i, tensor in enumerate(graph.initializer):
            scope.lazy[tensor.name] = lambda t=tensor, p=(places or {}).get(i): self._initializer(t, p)
        for sparse in graph.sparse_initializer:
            scope.lazy[sparse.values.name] = lambda s=sparse: self._param(s.values.name, sparse_value(s, self.model.base))

    def _initializer(self, tensor: Any, place: tuple[int, int] | None) -> RelayExpr:
        return self._param(tensor.name, self._read(tensor, place))

    def _read(self, tensor: Any, place: tuple[int, int] | None) -> NDArray:
        if place is None:
            return tensor_value(tensor, self.model.base)
        name, shape = f"tensor {tensor.name!r}", tuple(tensor.dims)
        dtype = numpy_dtype_of(tensor.data_type, name)
        need = dtype.itemsize
        for extent in shape:
            need *= extent
        if need != place[1]:  # a packed type, or a damaged file
            with open(self.model.path, "rb") as file:  # type: ignore[arg-type]
                file.seek(place[0])
                whole = type(tensor)()
                whole.CopyFrom(tensor)
                whole.raw_data = file.read(place[1])
            return tensor_value(whole, self.model.base)
        return read_range(self.model.path, place[0], shape, dtype, name)  # type: ignore[arg-type]

    def _param(self, name: str, data: NDArray) -> RelayExpr:
        if self.freeze or data.dtype == "int64" and data.ndim <= 1 and data.size <= 256:  # shapes, axes and places are no weights
            return Constant(data)
        var = infer_type(Var(name, Constant(data).checked_type, Span(name)))
        self.params[name], self.param_vars[name] = data, var  # type: ignore[assignment]
        self.builder.params[var] = data  # type: ignore[index]
        return var

    # -- graphs ------------------------------------------------------------------------------------------

    def import_graph(self, graph: Any, around: Scope, name: str) -> Outcome:
        """The results of a graph inside a node (a branch), which sees the names around it."""
        scope = Scope(around, prefix=f"{around.prefix}{name}/")
        self.initializers(graph, scope)
        self.check_supported(graph.node, scope)
        return self.run_graph(graph, scope)

    def run_graph(self, graph: Any, scope: Scope) -> Outcome:
        """The results of a graph whose inputs are known in ``scope``."""
        return self.run_nodes(graph.node, scope, lambda at_end: self.results(graph, at_end))

    def results(self, graph: Any, scope: Scope) -> list[RelayExpr]:
        """The graph's results."""
        found = []
        for info in graph.output:
            value = scope.find(info.name)
            if value is None:
                raise ParseError(f"no node makes the output {info.name!r} of the graph {graph.name!r}: the model is damaged")
            found.append(value)
        return found

    def check_supported(self, nodes: Sequence[Any], scope: Scope) -> None:
        """UnsupportedOpError naming all operators that have neither a converter nor a body."""
        problems = Unsupported()
        self._collect(nodes, scope.opsets, problems, set())
        problems.check()

    def _collect(self, nodes: Sequence[Any], opsets: dict[str, int], problems: Unsupported, seen: set[tuple[str, str]]) -> None:
        pending = [(nodes, opsets)]
        while pending:
            nodes, opsets = pending.pop()
            for node, name in zip(nodes, name_nodes(nodes)):
                domain = domain_of(node.domain)
                key, version = (domain, node.op_type), opsets.get(domain, 1)
                if key in self.functions:
                    if key not in seen:
                        seen.add(key)
                        function = self.functions[key]
                        pending.append((function.node, {domain_of(o.domain): o.version for o in function.opset_import}))
                elif find(domain, node.op_type, version) is None and not has_body(domain, node.op_type, version):
                    problems.add(domain, node.op_type, version, name)
                    pending.extend((g.node, opsets) for g in subgraphs(node))

    def run_nodes(self, nodes: Sequence[Any], scope: Scope, finish: Callable[[Scope], list[RelayExpr]] = lambda scope: []) -> Outcome:
        """Converts nodes and binds what they make; what ``finish`` finds in the scope at the end.

        Where a node makes values of different kinds on different ways, the rest of the nodes is converted for each way.
        """
        keep = list(nodes)  # the wrappers of protobuf must live for their ids to mean something
        names = {id(n): name for n, name in zip(keep, name_nodes(keep))}
        return self._run([(n, names[id(n)]) for n in ordered(keep, scope)], 0, scope, finish)

    def _run(self, nodes: list[tuple[Any, str]], start: int, scope: Scope, finish: Callable[[Scope], list[RelayExpr]]) -> Outcome:
        for at in range(start, len(nodes)):
            node, name = nodes[at]
            made = self._node(node, name, scope)
            if isinstance(made, Fork):
                return self._on_each_way(made, nodes, at, scope, finish)
            for output, value in zip([o for o in node.output if o], made):
                scope.define(output, value)
            scope.release(needed_names(node))
        return finish(scope)

    def _on_each_way(self, fork: Fork, nodes: list[tuple[Any, str]], at: int, scope: Scope,
                     finish: Callable[[Scope], list[RelayExpr]]) -> Outcome:
        node = nodes[at][0]

        def go_on(values: list[RelayExpr]) -> Outcome:
            self.builder.span = Span(scope.prefix + nodes[at][1])
            way = Scope(scope, prefix=scope.prefix)
            for output, value in zip([o for o in node.output if o], values):
                way.define(output, value)
            return self._run(nodes, at + 1, way, finish)

        self.ways += 1
        if self.ways > _MAX_WAYS:
            raise UnsupportedOpError(f"the model's branches give values of different numbers of dimensions in more than {_MAX_WAYS} places")
        return fork_of(fork, go_on, self.builder)

    def _node(self, node: Any, name: str, scope: Scope) -> Outcome:
        inputs = [self._input(n, node, name, scope) for n in node.input]
        label = scope.prefix + name
        domain = domain_of(node.domain)
        ctx = NodeContext(self, node.op_type, label, scope.version(domain), inputs, node.output, {}, scope)
        try:
            self.builder.span = Span(label)
            ctx.attributes = {a.name: attribute_value(a, self.model.base) for a in self._attributes(node, scope)}
            made = self._convert(ctx, domain, node)
            self.builder.span = Span(label)
            if isinstance(made, Fork):
                return made.on_leaves(lambda values: self.builder.settle(_wanted(values, ctx)))
            return self.builder.settle(_wanted(made, ctx))
        except Exception as exc:
            raise _located(exc, ctx, domain) from exc

    def _input(self, value: str, node: Any, name: str, scope: Scope) -> RelayExpr | None:
        if not value:
            return None
        found = scope.find(value)
        if found is None:
            raise ParseError(f"node {scope.prefix + name!r} ({node.op_type}) uses {value!r}, which is neither an input, an initializer nor "
                             "made by any node: the model is damaged")
        return found

    def _attributes(self, node: Any, scope: Scope) -> list[Any]:
        """The node's attributes, those that refer to the enclosing function's replaced by what it was called with."""
        found = []
        for each in node.attribute:
            if each.ref_attr_name:
                given = scope.attributes.get(each.ref_attr_name)
                if given is None:
                    continue
                copy = type(each)()
                copy.CopyFrom(given)
                copy.name, each = each.name, copy
            found.append(each)
        return found

    # -- one node ----------------------------------------------------------------------------------------

    def _convert(self, ctx: NodeContext, domain: str, node: Any) -> Any:
        local = self.functions.get((domain, ctx.op_type))
        if local is not None:
            return self._call_function(local, node, ctx)
        converter = find(domain, ctx.op_type, ctx.version)
        return converter(ctx) if converter is not None else self.expand(ctx, domain, node)

    def expand(self, ctx: NodeContext, domain: str, node: Any) -> Outcome:
        """The node through the body that the specification gives its operator."""
        plain = type(node)()
        plain.CopyFrom(node)
        del plain.attribute[:]
        plain.attribute.extend(self._attributes(node, ctx.scope))
        types = [self.builder.type_of(i) if i is not None else None for i in ctx.inputs]
        body = body_of(domain, ctx.version, plain, types)
        if body is None:
            raise UnsupportedOpError("this operator has no converter, and no body for these input types")
        return self._call_function(body, plain, ctx)

    def _call_function(self, function: Any, node: Any, ctx: NodeContext) -> Outcome:
        if self.nesting >= _MAX_NESTING:
            raise ParseError(f"function {function.name!r} calls itself, or functions are nested more than {_MAX_NESTING} deep")
        attributes = {a.name: a for a in function.attribute_proto}
        attributes.update({a.name: a for a in self._attributes(node, ctx.scope)})
        opsets = {domain_of(o.domain): o.version for o in function.opset_import}
        inner = Scope(None, {**ctx.scope.opsets, **opsets}, f"{ctx.name}/", attributes)
        absent = set()
        for formal, actual in zip(function.input, [*ctx.inputs, *[None] * len(function.input)]):
            if actual is None:
                absent.add(formal)
            else:
                inner.define(formal, actual)
        self.nesting += 1
        try:
            return self.run_nodes([_without(n, absent) for n in function.node], inner, lambda s: [s.find(o) for o in function.output])  # type: ignore[misc]
        finally:
            self.nesting -= 1


def _without(node: Any, absent: set[str]) -> Any:
    """The node with inputs that the function was not given left out."""
    if not any(i in absent for i in node.input):
        return node
    copy = type(node)()
    copy.CopyFrom(node)
    for i, name in enumerate(copy.input):
        if name in absent:
            copy.input[i] = ""
    return copy


def _wanted(made: Any, ctx: NodeContext) -> list[RelayExpr]:
    """What the converter made for the outputs that have a name; UnsupportedOpError when one of those is missing."""
    if isinstance(made, RelayExpr):
        made = [made]
    made = list(made)
    found = []
    for i, name in enumerate(ctx.outputs):
        if not name:
            continue
        if i >= len(made) or made[i] is None:
            raise UnsupportedOpError(f"output {i} ({name!r}) of this operator is not supported")
        found.append(made[i])
    return found


def _located(exc: Exception, ctx: NodeContext, domain: str) -> Exception:
    """The error with the node it happened at."""
    if not isinstance(exc, (AnchorlegError, ValueError, TypeError, LookupError, AttributeError)) or getattr(exc, "located", False):
        return exc
    where = (f"node {ctx.name!r} ({ctx.op_type}, version {ctx.version} of {domain or 'ai.onnx'}) with inputs "
             f"{', '.join(_shown(ctx, i) for i in ctx.inputs) or 'none'}")
    kind = type(exc) if isinstance(exc, AnchorlegError) else ArgumentError
    found = kind(f"{where}: {exc}" if isinstance(exc, AnchorlegError) else f"{where} cannot be converted: {type(exc).__name__}: {exc}")
    found.located = True  # type: ignore[attr-defined]
    return found


def _shown(ctx: NodeContext, expr: RelayExpr | None) -> str:
    if expr is None:
        return "(absent)"
    try:
        return show(ctx.builder.type_of(expr))
    except AnchorlegError:
        return "(of unknown type)"


def from_onnx(model: Any, shape: Any = None, dtype: Any = "float32", opset: int | None = None, freeze_params: bool = True,
              convert_config: dict[str, Any] | None = None, export_node_renamed_model_path: str | None = None,
              ) -> tuple[IRModule, dict[str, NDArray]]:
    """A Relay module, and its parameters, from an ONNX model.

    Parameters
    ----------
    model: an ``onnx.ModelProto``, the path of a model file (weights are then read straight from it), or its bytes.
    shape: shapes of inputs by name (or a list of them, in the order of the inputs); they win over the model's.  None,
        -1 or ``relay.Any()`` is a size not known before run time.  Without it the model's shapes are taken, symbolic
        sizes as ``relay.Any()``.
    dtype: element types of inputs by name; a single one counts only where the model gives none.
    opset: version of the ONNX operator set to read the model by, instead of the one it names.
    freeze_params: weights become constants of ``main`` (and the returned dict is empty); otherwise they are parameters
        of ``main``, after the inputs, with their values in the returned dict.
    convert_config: ``use_nt_batch_matmul`` (default True): batched products take their second operand transposed;
        ``unroll_limit`` (default 4096): recurrent layers, loops and scans of more steps than this become loops (which the
        virtual machine runs, and the graph executor does not); 0 unrolls nothing.
    export_node_renamed_model_path: where to write the model with a name for every node, as spans name them.

    Returns
    -------
    (IRModule, dict): ``main`` takes the model's inputs, in order and by name, and gives its output, or a tuple of them.

    Raises
    ------
    ParseError: the file is not a whole ONNX model.  UnsupportedOpError: names every operator that cannot be imported.
    ArgumentError, TypeMismatchError: with the node, its operator and its input types.
    """
    found = open_model(model)
    config = _checked_config(convert_config)
    importer = GraphImporter(found, opset, freeze_params, config)
    function, params = importer.run(shape, dtype)
    if export_node_renamed_model_path:
        _export_renamed(found, os.fspath(export_node_renamed_model_path))
    mod = importer.lists.mod.copy() if "lists" in vars(importer) else IRModule()
    mod["main"] = function
    return infer_module(mod), params


def _checked_config(config: dict[str, Any] | None) -> dict[str, Any]:
    unknown = (config or {}).keys() - DEFAULT_CONFIG.keys()
    if unknown:
        raise ArgumentError(f"convert_config has no entry {', '.join(map(repr, sorted(unknown)))}; it has: {', '.join(DEFAULT_CONFIG)}")
    return {**DEFAULT_CONFIG, **(config or {})}


def _export_renamed(model: Model, path: str) -> None:
    import onnx

    whole = onnx.load(model.path) if model.path else type(model.proto).FromString(model.proto.SerializeToString())
    for node, name in zip(whole.graph.node, name_nodes(whole.graph.node)):
        node.name = name
    onnx.save(whole, path)
