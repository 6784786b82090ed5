"""The pytest plugin: runs tests that take ``target`` on every enabled target, gives them ``dev``, and applies marks.

Enabled with ``pytest_plugins = ["anchorleg.testing.plugin"]``.
"""
from __future__ import annotations

from typing import Any

import pytest

from . import targets
from .features import Feature
from .fixtures import clear_fixture_caches

MARKERS = {
    "gpu": "mark a test as requiring a gpu",
    "tensorcore": "mark a test as requiring a tensorcore",
    "slow": "mark a test as slow",
    "corstone300": "mark a test as requiring Corstone300 FVP",
}


def pytest_configure(config: Any) -> None:
    """Declares the marks of the features."""
    for feature in Feature._all_features.values():
        config.addinivalue_line("markers", f"{feature.name}: the test uses {feature.long_name}")
    for name, text in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text}")


def pytest_addoption(parser: Any) -> None:
    """Arguments for C++ tests that are run from Python."""
    parser.addoption("--gtest_args", action="store", default="")


def pytest_generate_tests(metafunc: Any) -> None:
    """Parametrises one test function."""
    _parametrize_groups(metafunc)
    if "target" in metafunc.fixturenames:
        _parametrize_target(metafunc)
    if "gtest_args" in metafunc.fixturenames:
        metafunc.parametrize("gtest_args", [metafunc.config.option.gtest_args])


def _parametrize_groups(metafunc: Any) -> None:
    """Fixtures made by ``parameters`` get their values together."""
    groups: dict[int, tuple[Any, list[tuple[str, Any]]]] = {}
    for name, definitions in metafunc.definition._fixtureinfo.name2fixturedefs.items():
        group = getattr(definitions[-1].func, "parameter_group", None)
        if group is not None:
            groups.setdefault(group.number, (group.ids, []))[1].append((name, definitions[-1].func.parameter_values))
    for ids, members in groups.values():
        names = [name for name, _ in members]
        values = list(zip(*[v for _, v in members])) if len(members) > 1 else list(members[0][1])
        metafunc.parametrize(",".join(names), values, indirect=True, ids=ids)


def _parametrize_target(metafunc: Any) -> None:
    """A test that takes ``target`` and does not say which runs on all that are enabled, except those it excludes."""
    named = {arg.strip() for mark in metafunc.definition.iter_markers("parametrize") for arg in _argnames(mark)}
    if "target" in named:
        return
    excluded = getattr(metafunc.function, "tvm_excluded_targets", ())
    chosen = [t.target for t in targets.test_targets() if t.kind not in excluded]
    metafunc.definition.add_marker(pytest.mark.parametrize("target", chosen, scope="session"))


def _argnames(mark: Any) -> list[str]:
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return names.split(",") if isinstance(names, str) else list(names)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Marks tests by their target, and keeps the tests of one function together."""
    for item in items:
        target = getattr(item, "callspec", None) and item.callspec.params.get("target")
        if target:
            _mark_by_target(item, target)
    items.sort(key=lambda item: (item.location[0], item.location[1] or 0, item.location[2].split("[")[0]))


def _mark_by_target(item: Any, target: Any) -> None:
    kind = target.split()[0] if isinstance(target, str) else getattr(getattr(target, "kind", None), "name", None)
    feature = Feature._all_features.get(kind) if kind else None
    for mark in feature.marks() if feature is not None else ():
        item.add_marker(mark)
    if kind in getattr(item.function, "tvm_known_failing_targets", ()):
        item.add_marker(pytest.mark.xfail(reason=f'Known failing test for target "{kind}"'))


@pytest.fixture
def dev(target: Any) -> Any:
    """The device of the test's target."""
    from ..runtime.device import device

    return device(target.split()[0] if isinstance(target, str) else target.kind.name)


def pytest_runtest_teardown(item: Any, nextitem: Any) -> None:
    """Values of cached fixtures live as long as a module's tests run."""
    if nextitem is None or getattr(nextitem, "module", None) is not getattr(item, "module", None):
        clear_fixture_caches()


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Choosing marks that select nothing is no failure."""
    if session.config.option.markexpr and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
