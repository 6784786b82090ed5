"""What is common to all languages of the compiler: nodes, types, expressions, modules, operators, passes."""
from .attrs import Attrs, DictAttrs, make_node
from .expr import Any, BaseExpr, BaseFunc, FloatImm, GlobalVar, IntImm, PrimExpr, Range, RelayExpr
from .module import IRModule
from .node import Node
from .op import Op, OpPattern, register_op_attr
from .span import SequentialSpan, SourceName, Span
from .type import (FuncType, GlobalTypeVar, IncompleteType, PointerType, PrimType, RefType, RelayRefType, TensorType, TupleType, Type,
                   TypeCall, TypeConstraint, TypeKind, TypeRelation, TypeVar)
from .env_func import EnvFunc
from .serialize import load_json, save_json
from .structural import StructuralMismatch, assert_structural_equal, first_difference, structural_equal, structural_hash
