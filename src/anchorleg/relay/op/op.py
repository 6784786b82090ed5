"""Operators as strategies see them: lookup, registration of compute rules, and the strategy classes.

A *strategy* answers, for an operator under given types and a target, which implementations exist; the compiler takes
the valid one of highest priority level (``plevel``).
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.op import Op, OpPattern, register_op, register_op_attr
from ...support.errors import ArgumentError


def get(op_name: str) -> Op:
    """The operator of that name; UnsupportedOpError when there is none."""
    return Op.get(op_name)


def register(op_name: str, describe: str = "") -> Op:
    """A new operator; ArgumentError when one of that name exists."""
    if op_name in Op.list_op_names():
        raise ArgumentError(f"Operator {op_name} is registered before")
    return register_op(op_name, describe)


class OpImplementation:
    """One way to compute an operator: a compute rule and a schedule, under a name and a priority level."""

    def __init__(self, fcompute: Callable[..., Any], fschedule: Callable[..., Any], name: str, plevel: int) -> None:
        self._compute, self._schedule, self.name, self.plevel = fcompute, fschedule, name, plevel

    def compute(self, attrs: Any, inputs: Sequence[Any], out_type: Any) -> list[Any]:
        """The output tensors, as a list of ``te.Tensor``."""
        outs = self._compute(attrs, list(inputs), out_type)
        return list(outs) if isinstance(outs, (list, tuple)) else [outs]

    def schedule(self, attrs: Any, outs: Sequence[Any], target: Any) -> Any:
        """A ``te.Schedule`` for ``outs``, under ``target``."""
        with target:
            return self._schedule(attrs, list(outs), target)

    def __repr__(self) -> str:
        return f"OpImplementation({self.name!r}, plevel={self.plevel})"


class OpSpecialization:
    """Implementations that are valid under a condition on symbolic shapes (None: always)."""

    def __init__(self, condition: Any = None) -> None:
        self.condition = condition
        self.implementations: list[OpImplementation] = []


class OpStrategy:
    """All implementations of an operator for given inputs and target."""

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(self, compute: Callable[..., Any], schedule: Callable[..., Any], name: str = "default",
                           plevel: int = 10) -> None:
        """Adds ``compute(attrs, inputs, out_type)`` with ``schedule(attrs, outs, target)``.

        Inside a ``te.SpecializedCondition`` it is valid only where that condition holds.
        """
        from ...te.specialized import SpecializedCondition

        condition = SpecializedCondition.current()
        for found in self.specializations:
            if found.condition is condition:
                break
        else:
            found = OpSpecialization(condition)
            self.specializations.append(found)
        found.implementations.append(OpImplementation(compute, schedule, name, plevel))

    @property
    def implementations(self) -> list[OpImplementation]:
        """Every implementation, best priority first."""
        found = [i for s in self.specializations for i in s.implementations]
        return sorted(found, key=lambda i: -i.plevel)


def register_stateful(op_name: str, stateful: bool, level: int = 10) -> Any:
    """Sets whether calls of the operator must not be merged, moved or dropped."""
    return register_op_attr(op_name, "TOpIsStateful", bool(stateful), level)


def register_pattern(op_name: str, pattern: int, level: int = 10) -> Any:
    """Sets the operator's fusion pattern (an ``OpPattern``)."""
    return register_op_attr(op_name, "TOpPattern", OpPattern(int(pattern)), level)


def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """Registers ``(attrs, inputs, out_type) -> list[te.Tensor]``, the same for all targets; usable as a decorator."""
    return register_op_attr(op_name, "FTVMCompute", compute, level)


def register_strategy(op_name: str, fstrategy: Any = None, level: int = 10) -> Any:
    """Registers ``(attrs, inputs, out_type, target) -> OpStrategy`` (a generic function or a plain one)."""
    return register_op_attr(op_name, "FTVMStrategy", fstrategy, level)


def register_schedule(op_name: str, schedule: Callable[..., Any], level: int = 10) -> Any:
    """Registers a schedule for an operator whose compute rule (``register_compute``) serves all targets."""
    def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> OpStrategy:
        compute = get(op_name).get_attr("FTVMCompute")
        if compute is None:
            raise ArgumentError(f"register_schedule: register_compute({op_name!r}, …) must come first")
        found = OpStrategy()
        found.add_implementation(compute, schedule, name=f"{op_name}.{getattr(schedule, '__name__', 'schedule')}")
        return found

    strategy.source_rule = schedule  # type: ignore[attr-defined]
    return register_strategy(op_name, strategy, level)


def _schedule_by_name(name: str) -> Callable[..., Any]:
    def schedule(attrs: Any, outs: Any, target: Any) -> Any:
        from .strategy import generic

        return getattr(generic, name)(attrs, outs, target)

    schedule.__name__ = name
    return schedule


def register_injective_schedule(op_name: str, level: int = 10) -> Any:
    """Gives the operator the schedule of element-wise and injective operators."""
    return register_schedule(op_name, _schedule_by_name("schedule_injective"), level)


register_broadcast_schedule = register_injective_schedule


def register_reduce_schedule(op_name: str, level: int = 10) -> Any:
    """Gives the operator the schedule of commutative reductions."""
    return register_schedule(op_name, _schedule_by_name("schedule_reduce"), level)


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """Registers ``(attrs, inputs, tinfos, out_type) -> new expression or None``; usable as a decorator."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


def register_convert_op_layout(op_name: str, convert_layout: Any = None, level: int = 10) -> Any:
    """Registers ``(attrs, inputs, tinfos, desired_layouts) -> new expression``; usable as a decorator."""
    return register_op_attr(op_name, "FTVMConvertOpLayout", convert_layout, level)


def register_infer_correct_layout(op_name: str, infer_layout: Any = None, level: int = 10) -> Any:
    """Registers how the operator's layouts follow from its inputs' layouts; usable as a decorator."""
    return register_op_attr(op_name, "FInferCorrectLayout", infer_layout, level)


def register_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """Registers ``(attrs, inputs, arg_types) -> new expression or None``; usable as a decorator."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> Any:
    """Registers ``(call, output_gradient) -> list of input gradients``; usable as a decorator."""
    return register_op_attr(op_name, "FPrimalGradient", fgradient, level)


def register_shape_func(op_name: str, data_dependent: bool | Sequence[bool], shape_func: Any = None, level: int = 10) -> Any:
    """Registers how output shapes follow from input shapes (or values, where ``data_dependent``) at run time."""
    flags = list(data_dependent) if isinstance(data_dependent, (list, tuple)) else [bool(data_dependent)]
    register_op(op_name).set_attr("TShapeDataDependent", flags, level)
    return register_op_attr(op_name, "FShapeFunc", shape_func, level)


def register_external_compiler(op_name: str, fexternal: Any = None, level: int = 10) -> Any:
    """Registers how a call is wrapped for an external compiler; usable as a decorator."""
    return register_op_attr(op_name, "FTVMExternalCompiler", fexternal, level)


def register_fake_quantization_to_integer(op_name: str, func: Any = None, level: int = 10) -> Any:
    """Registers the integer form of the operator under affine types; usable as a decorator."""
    return register_op_attr(op_name, "FTVMFakeQuantizationToInteger", func, level)


def register_optional_fake_quantization_to_integer(op_name: str, func: Any = None, level: int = 10) -> Any:
    """Like :func:`register_fake_quantization_to_integer`, for operators that may stay in floating point."""
    return register_op_attr(op_name, "FTVMOptionalFakeQuantizationToInteger", func, level)


def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = 10) -> Any:
    """Registers ``(call, dtype) -> [category, accumulation dtype, output dtype]``; usable as a decorator."""
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)
