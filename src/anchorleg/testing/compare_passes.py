"""``CompareBeforeAfter``: a test of one pass as three declarations: before, transform, expected."""
from __future__ import annotations

import inspect
import textwrap
from typing import Any, Callable

import pytest

from ..ir.expr import BaseFunc
from ..ir.module import IRModule
from ..ir.structural import assert_structural_equal
from ..ir.transform import Pass
from ..support.errors import ArgumentError


def is_fixture(value: Any) -> bool:
    """Whether pytest knows the value as a fixture (its mark moved from the function to an object of its own)."""
    return hasattr(value, "_pytestfixturefunction") or type(value).__name__ == "FixtureFunctionDefinition"


class CompareBeforeAfter:
    """Subclasses declare ``before``, ``transform`` and ``expected``; the test applies the one and compares.

    * ``before`` / ``Before``, ``expected`` / ``Expected``: a function or module, a method or fixture returning one, or a
      script function without its decorator (a class: a module of them); ``expected`` may be an exception class.
    * ``transform``: a pass, or a method or fixture returning one.
    """

    check_well_formed: bool = True

    def __init_subclass__(cls) -> None:
        for name in ("before", "expected"):
            given = [n for n in (name, name.capitalize()) if hasattr(cls, n)]
            own = [n for n in given if n in cls.__dict__] or given
            if len([n for n in given if n in cls.__dict__]) > 1:
                raise ArgumentError(f"{cls.__name__} declares both {given[0]} and {given[1]}: keep one")
            if own:
                setattr(cls, name, _as_fixture(getattr(cls, own[0])))
        if hasattr(cls, "transform"):
            _set_transform(cls, cls.transform)

    def test_compare(self, before: Any, expected: Any, transform: Callable[[Any], Any]) -> None:
        """The comparison itself."""
        if inspect.isclass(expected) and issubclass(expected, BaseException):
            with pytest.raises(expected):
                after = transform(before)
                pytest.fail(f"{expected.__name__} was expected; instead the result is\n{after}")
            return
        if not isinstance(expected, (BaseFunc, IRModule)):
            raise TypeError(f"expected is to be a function, a module or an exception class, got {type(expected).__name__}")
        after = transform(before)
        if isinstance(after, BaseFunc) and isinstance(expected, BaseFunc):
            after, expected = (f.with_attr("global_symbol", "main") for f in (after, expected))
        try:
            assert_structural_equal(after, expected)
        except ValueError as exc:
            raise ValueError(f"before:\n{before}\nafter:\n{after}\nexpected:\n{expected}") from exc


def _as_fixture(value: Any) -> Any:
    """What a class declares as a fixture that gives the program (or the exception)."""
    if is_fixture(value):
        return value
    if _is_method(value):
        return pytest.fixture(lambda self: value(self))

    def give(self: Any) -> Any:
        if isinstance(value, (BaseFunc, IRModule)) or inspect.isclass(value) and issubclass(value, BaseException):
            return value
        return _parsed_class(value, self.check_well_formed) if inspect.isclass(value) else _parsed(value, self.check_well_formed)

    return pytest.fixture(give)


def _parsed(func: Any, check: bool) -> Any:
    from ..script import from_source

    return from_source("@T.prim_func\n" + textwrap.dedent(inspect.getsource(func)), check_well_formed=check)


def _parsed_class(cls: type, check: bool) -> IRModule:
    members = {n: v for n, v in cls.__dict__.items() if not n.startswith("_")}
    funcs = {n: v if isinstance(v, BaseFunc) else _parsed(v, check) for n, v in members.items()}
    return IRModule({n: f.with_attr("global_symbol", n) for n, f in funcs.items()})


def _set_transform(cls: type, transform: Any) -> None:
    if is_fixture(transform):
        if not hasattr(cls, "_declared_transform"):
            cls._declared_transform = transform  # type: ignore[attr-defined]
        cls.transform = pytest.fixture(lambda self, _declared_transform: _applier(_declared_transform))  # type: ignore[attr-defined]
    elif isinstance(transform, Pass):
        cls.transform = pytest.fixture(lambda self: _applier(transform))  # type: ignore[attr-defined]
    elif _is_method(transform):
        cls.transform = pytest.fixture(lambda self: _applier(transform(self)))  # type: ignore[attr-defined]
    else:
        raise TypeError(f"{cls.__name__}.transform is to be a pass, or a method that returns one, got {type(transform).__name__}")


def _applier(each: Callable[[IRModule], IRModule]) -> Callable[[Any], Any]:
    def apply(program: Any) -> Any:
        if isinstance(program, IRModule):
            return each(program)
        if not isinstance(program, BaseFunc):
            raise TypeError(f"expected a module or a function, got {type(program).__name__}")
        return each(IRModule({"main": program}))["main"]

    return apply


def _is_method(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value) and "self" in inspect.signature(value).parameters
