"""Patterns over dataflow: describe a piece of a program, find it, rewrite it, or cut it out as a function.

::

    x, w, b = wildcard(), wildcard(), is_constant()
    conv_bias = is_op("nn.bias_add")(is_op("nn.conv2d")(x, w), b)
    conv_bias.match(expr)
    conv_bias.partition(expr, {"Composite": "conv_bias"})
"""
from .matcher import match
from .pattern import (AltPattern, AttrPattern, CallPattern, ConstantPattern, DataTypePattern, DFPattern, DominatorPattern, ExprPattern,
                      FunctionPattern, IfPattern, LetPattern, ShapePattern, TupleGetItemPattern, TuplePattern, TypePattern, VarPattern,
                      WildcardPattern, dominates, has_attr, has_dtype, has_shape, has_type, is_constant, is_expr, is_if, is_let, is_op,
                      is_tuple, is_tuple_get_item, is_var, wildcard)
from .rewrite import DFPatternCallback, partition, rewrite

__all__ = ["AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DataTypePattern", "DFPattern", "DFPatternCallback",
           "DominatorPattern", "ExprPattern", "FunctionPattern", "IfPattern", "LetPattern", "ShapePattern", "TupleGetItemPattern",
           "TuplePattern", "TypePattern", "VarPattern", "WildcardPattern", "dominates", "has_attr", "has_dtype", "has_shape", "has_type",
           "is_constant", "is_expr", "is_if", "is_let", "is_op", "is_tuple", "is_tuple_get_item", "is_var", "match", "partition",
           "rewrite", "wildcard"]
