"""Parametrised fixtures and decorators for pytest (7.4 and later)."""
from __future__ import annotations

import copy
import functools
import importlib.util
import inspect
import itertools
import os
import pickle
import platform
import sys
from typing import Any, Callable, Mapping, Sequence

import pytest

from ..support.errors import ArgumentError

IS_IN_CI = os.getenv("CI", "") == "true"
SKIP_SLOW_TESTS = os.getenv("SKIP_SLOW_TESTS", "").lower() in ("true", "1", "yes")
skip_if_wheel_test = pytest.mark.skipif(os.getenv("WHEEL_TEST", "").lower() in ("true", "1", "yes"), reason="not for wheels")
slow = pytest.mark.skipif(SKIP_SLOW_TESTS, reason="slow tests are switched off by SKIP_SLOW_TESTS")


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None) -> Any:
    """A fixture that takes each of ``values`` in turn: tests that ask for several run on every combination.

    ``by_dict`` gives values by name instead.
    """
    if by_dict is not None:
        if values or ids:
            raise RuntimeError("parameter: by_dict takes the place of values and ids; give one of the two")
        names, choices = zip(*by_dict.items())
        return parameter(*choices, ids=names)

    @pytest.fixture(params=values, ids=ids)
    def chosen(*_self: Any, request: Any) -> Any:
        return request.param

    return chosen


class ParameterGroup:
    """Fixtures whose values change together."""

    counter = itertools.count()

    def __init__(self, ids: Sequence[str] | None) -> None:
        self.number, self.ids = next(self.counter), ids


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Fixtures that change together: a test that asks for several of them runs once per set of values."""
    group = ParameterGroup(ids)
    return [_grouped(group, values) for values in zip(*value_sets)]


def _grouped(group: ParameterGroup, values: tuple[Any, ...]) -> Any:
    def chosen(*_self: Any, request: Any) -> Any:
        return request.param

    chosen.parameter_group, chosen.parameter_values = group, values  # type: ignore[attr-defined]
    return pytest.fixture(chosen)


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A fixture; with ``cache_return_value`` computed once per module and set of arguments, and copied for each test.

    ``TVM_TEST_DISABLE_CACHE=1`` switches the cache off.
    """
    cached = cache_return_value and not int(os.environ.get("TVM_TEST_DISABLE_CACHE", "0") or 0)

    def wrap(inner: Callable[..., Any]) -> Any:
        return pytest.fixture(_cached(inner) if cached else inner)

    return wrap if func is None else wrap(func)


_CACHES: list[dict[Any, Any]] = []


def clear_fixture_caches() -> None:
    """Forgets the values of cached fixtures (done when a module's tests are over)."""
    for cache in _CACHES:
        cache.clear()


def _cached(func: Callable[..., Any]) -> Callable[..., Any]:
    cache: dict[Any, Any] = {}
    _CACHES.append(cache)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        key = _cache_key(args, kwargs)
        if key not in cache:
            cache[key] = func(*args, **kwargs)
        return copy.deepcopy(cache[key])

    return wrapper


def _cache_key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    items = (args, tuple(sorted(kwargs.items())))
    try:
        hash(items)
        return items
    except TypeError:
        pass
    try:
        return pickle.dumps(items)
    except (TypeError, pickle.PicklingError, AttributeError) as exc:
        raise ArgumentError(f"a cached fixture's arguments are expected to be hashable or to pickle: {exc}") from exc


def parametrize_targets(*args: Any) -> Any:
    """Runs a test on exactly these targets; bare, on all that are enabled (the default for tests that take ``target``)."""
    if len(args) == 1 and callable(args[0]):
        return args[0]
    return pytest.mark.parametrize("target", list(args), scope="session")


def exclude_targets(*args: str) -> Any:
    """Leaves target kinds out of those a test runs on."""
    return functools.partial(_note, "tvm_excluded_targets", args)


def known_failing_targets(*args: str) -> Any:
    """Expects a test to fail on target kinds."""
    return functools.partial(_note, "tvm_known_failing_targets", args)


def _note(name: str, value: Any, func: Any) -> Any:
    setattr(func, name, value)
    return func


def requires_package(*packages: str) -> Any:
    """Skips a test when a Python package is missing."""
    marks = [pytest.mark.skipif(not _has_package(p), reason=f"Cannot import '{p}'") for p in packages]
    return lambda func: functools.reduce(lambda f, mark: mark(f), marks, func)


def _has_package(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def skip_if_32bit(reason: str) -> Any:
    """Skips a test on machines of 32 bits."""
    return pytest.mark.skipif("32bit" in platform.architecture()[0], reason=reason)


def skip_parameterizations(*params: str, reason: str) -> Any:
    """Skips a test (one that takes ``request``) for those parameter ids."""
    return _for_parameters(set(params), pytest.skip, reason)


def xfail_parameterizations(*params: str, reason: str) -> Any:
    """Expects a test (one that takes ``request``) to fail for those parameter ids."""
    return _for_parameters(set(params), pytest.xfail, reason)


def _for_parameters(params: set[str], give_up: Callable[..., Any], reason: str) -> Any:
    def decorate(func: Any) -> Any:
        @functools.wraps(func)
        def wrapper(request: Any, *args: Any, **kwargs: Any) -> Any:
            if request.node.name[len(request.node.originalname):].strip("[]") in params:
                give_up(reason=f"{request.node.nodeid}: {reason}")
            return func(request, *args, **kwargs)

        return wrapper

    return decorate


def main() -> None:
    """Runs pytest on the calling file and exits."""
    file = inspect.getsourcefile(sys._getframe(1))
    sys.exit(pytest.main([str(file), *sys.argv[1:]]))
