"""Code generation for the graph executor: a fused ``main`` → node list → memory plan → JSON and kernels."""
from __future__ import annotations

from typing import Any, Callable, Iterable, NamedTuple

from ...ir.expr import BaseFunc, GlobalVar
from ...ir.module import IRModule
from ...ir.op import Op
from ...ir.type import TensorType
from ...ir.visit import Walker
from ...runtime import ndarray
from ...runtime.name_transforms import sanitize_name
from ...support.errors import TypeMismatchError, UnsupportedOpError
from ...support.names import NameSupply
from ..expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from ..function import Function
from ..transform.common import is_op
from . import te_compiler
from .external import external_call
from .graph_arena import arena_offsets
from .graph_nodes import COPY, NOP, Entry, GraphNode, TensorInfo, graph_json
from .graph_plan_memory import MemoryPlan, plan_memory
from .placement import where_of
from .te_lowering import flatten_tensor_types, shorten
from .utils import mangle_module_name

NameKernel = Callable[[Function], str]


class GraphCode(NamedTuple):
    """A graph ready for its runtime: nodes, results, plan, constants by parameter name."""

    nodes: list[GraphNode]
    heads: list[Entry]
    plan: MemoryPlan
    params: dict[str, Any]

    @property
    def json(self) -> str:
        """The graph in upstream's JSON format."""
        return graph_json(self.nodes, self.heads, self.plan.storage, arena_offsets(self.nodes, self.heads))


def infos_of(ty: Any, what: str) -> list[TensorInfo]:
    """The tensors of a type with static shapes; an error naming ``what`` for a dynamic one."""
    infos: list[TensorInfo] = []
    for t in flatten_tensor_types(ty):
        if not t.is_static:
            raise TypeMismatchError(f"the graph executor needs static shapes, but {what} has the type {t}: "
                                    "fix the input shapes, or build for the VM (relay.vm.compile)")
        infos.append(TensorInfo(t.concrete_shape, t.dtype))
    return infos


class Flattener(Walker):
    """Turns the expressions of ``main`` into graph nodes; the result of a visit is a list of entries."""

    def __init__(self, name_kernel: NameKernel, mod: IRModule | None = None) -> None:
        super().__init__()
        self.name_kernel, self.mod = name_kernel, mod
        self.nodes: list[GraphNode] = []
        self.params: dict[str, Any] = {}
        self.names = NameSupply()
        self._constants: dict[int, list[Entry]] = {}

    def add(self, node: GraphNode) -> list[Entry]:
        """Appends a node; its outputs."""
        self.nodes.append(node)
        return [Entry(len(self.nodes) - 1, i) for i in range(len(node.outputs))]

    def add_parameter(self, var: Var) -> None:
        """Makes a function parameter an input of the graph."""
        infos = infos_of(var.checked_type, f"parameter {var.name_hint!r}")
        if len(infos) != 1 or not isinstance(var.checked_type, TensorType):
            raise UnsupportedOpError(f"the graph executor takes tensors only; parameter {var.name_hint!r} is a {var.checked_type}")
        name = self.names.fresh(var.name_hint)
        self.memo[id(var)] = (var, self.add(GraphNode(name, None, (), infos, origin=var.span, **_place(var))))

    def visit_Var(self, var: Var) -> list[Entry]:
        raise UnsupportedOpError(f"variable {var.name_hint!r} is not bound in main")

    def visit_Constant(self, constant: Constant) -> list[Entry]:
        found = self._constants.get(id(constant))
        if found is None:
            name = self.names.fresh(f"p{len(self.params)}")
            # folding leaves views of the original weights; here they get the memory they are run from, and the view goes
            constant.data = self.params[name] = ndarray.aligned(constant.data)
            info = TensorInfo(tuple(constant.data.shape), str(constant.data.dtype))
            found = self._constants[id(constant)] = self.add(GraphNode(name, None, (), (info,), **_place(constant)))
        return found

    def visit_Tuple(self, tup: Tuple) -> Any:
        fields = yield list(tup.fields)
        return [e for field in fields for e in field]

    def visit_TupleGetItem(self, get: TupleGetItem) -> Any:
        entries = yield get.tuple_value
        widths = [len(flatten_tensor_types(f)) for f in get.tuple_value.checked_type.fields]
        start = sum(widths[: get.index])
        return entries[start: start + widths[get.index]]

    def visit_Let(self, let: Let) -> Any:
        value = yield let.value
        self.memo[id(let.var)] = (let.var, value)
        return (yield let.body)

    def visit_Call(self, call: Call) -> Any:
        func, external = call.op, external_call(call, self.mod)
        if external is None and not (isinstance(func, Function) and func.get_attr("Primitive") and not func.get_attr("Compiler")):
            raise UnsupportedOpError(f"the graph executor runs fused kernels only, found {_callee(func)}: functions that "
                                     "are values or recursive need the VM (relay.vm.compile)")
        args = yield list(call.args if external is None else external.args)
        inputs = [e for arg in args for e in arg]
        infos = infos_of(call.checked_type, "a call")
        origin = call.span
        if external is not None:
            return self.add(GraphNode(self.names.fresh(external.symbol), external.symbol, inputs, infos, origin=origin))
        if func.get_attr("relay.reshape_only") and len(inputs) == 1:
            return self.add(GraphNode(self.names.fresh("reshape_nop"), NOP, inputs, infos, origin=origin, **_place(func)))
        name = COPY if is_op(func.body, "device_copy") else self.name_kernel(func)
        return self.add(GraphNode(self.names.fresh(name), name, inputs, infos, origin=origin, **_place(func)))

    def visit_default(self, node: Any) -> Any:
        raise UnsupportedOpError(f"the graph executor has no control flow: main holds a {type(node).__name__}; "
                                 "build for the VM (relay.vm.compile)")


def _place(node: Any) -> dict[str, Any]:
    """Where a variable, a constant or a primitive function says that values are."""
    device = node.virtual_device_
    return {"device": where_of(node), "scope": device.memory_scope if device is not None else ""}


def _callee(func: Any) -> str:
    if isinstance(func, Op):
        return f"a bare call of operator {func.name} (FuseOps has not run)"
    return f"a call of @{func.name_hint}" if isinstance(func, GlobalVar) else f"a call of a {type(func).__name__}"


def flatten_main(func: Function, name_kernel: NameKernel, mod: IRModule | None = None) -> GraphCode:
    """A fused, typed function as a graph with its memory planned; ``mod`` has the functions compiled elsewhere that it calls."""
    flattener = Flattener(name_kernel, mod)
    for param in func.params:
        flattener.add_parameter(param)
    heads = flattener.visit(func.body)
    return GraphCode(flattener.nodes, heads, plan_memory(flattener.nodes, heads), flattener.params)


class KernelNames:
    """Upstream-style symbol names for primitive functions: readable, unique, equal for equal functions."""

    def __init__(self, mod_name: str, key_of: Callable[[Function], Any], taken: Iterable[str] = ()) -> None:
        self.prefix, self.key_of = mangle_module_name(mod_name), key_of
        self._supply = NameSupply(taken=taken)
        self.names: dict[Any, str] = {}

    def __call__(self, func: Function) -> str:
        key = self.key_of(func)
        if key not in self.names:
            self.names[key] = self._supply.fresh(sanitize_name(f"{self.prefix}_{fused_name(func)}"))
        return self.names[key]


def fused_name(func: Function) -> str:
    """``fused_nn_conv2d_add_nn_relu`` for a function that calls those operators, in evaluation order."""
    from ...ir.visit import post_order
    from .kernels import expression_children

    calls = [n for n in post_order(func.body, expression_children) if isinstance(n, Call) and isinstance(n.op, Op)]
    return shorten(["fused", *(c.op.name.replace(".", "_") for c in calls)])


class GraphExecutorCodegen:
    """Upstream's interface: lowers a module for the graph executor.

    ``codegen(ir_module, func)`` returns (graph JSON, lowered IRModule of PrimFuncs, params by name).
    """

    def __init__(self, mod: Any, target: Any) -> None:
        from ...target.target import Target

        self.target = Target.canon_multi_target(target)[0] if isinstance(target, (list, tuple, dict)) else Target(target)
        self.compiler = te_compiler.TECompiler()

    def codegen(self, ir_module: IRModule, func: Any = None) -> tuple[str, IRModule, dict[str, Any]]:
        """(graph JSON, lowered module, params) of ``func`` (default: the module's ``main``)."""
        main = func if func is not None else ir_module["main"]
        lowered: dict[str, BaseFunc] = {}

        def name_kernel(primitive: Function) -> str:
            cached = self.compiler.lower(primitive, self.target)
            lowered[cached.prim_fn_var.name_hint] = cached.prim_func
            return cached.prim_fn_var.name_hint

        code = flatten_main(main, name_kernel)
        return code.json, IRModule(lowered), code.params
