"""Passes and the context they run under.

A pass is a pure function ``IRModule → IRModule``.  It declares a name, an ``opt_level`` and the passes it requires; it is
run by calling it.  A required pass (type inference, most often) is run first whenever the pass is called, so a pass
never meets a module in a state it cannot take.
"""
from __future__ import annotations

import functools
import sys
import threading
from typing import Any, Callable, Iterable, Mapping, Sequence

from ..support.errors import ArgumentError
from .module import IRModule
from .pass_options import OPTIONS

_OPTIONS: dict[str, tuple[type, str]] = dict(OPTIONS)


def register_config_option(key: str, value_type: type, doc: str = "") -> None:
    """Declares a key of ``PassContext(config=...)`` and the type of its values."""
    _OPTIONS[key] = (value_type, doc)


class PassInfo:
    """A pass's name, the level from which it runs, and what must have run before."""

    __slots__ = ("name", "opt_level", "required", "traceable")

    def __init__(self, opt_level: int, name: str, required: Sequence[str] | None = None, traceable: bool = False) -> None:
        self.opt_level, self.name, self.required, self.traceable = opt_level, name, tuple(required or ()), traceable

    def __repr__(self) -> str:
        return f"The meta data of the pass - pass name: {self.name}, opt_level: {self.opt_level}, required passes: [{', '.join(self.required)}]"


class PassContext:
    """Options in force while passes run; a context manager.

    Parameters
    ----------
    opt_level: passes of a higher level are skipped (default 2).
    required_pass / disabled_pass: names of passes to run, or skip, whatever their level.
    instruments: objects of :class:`PassInstrument`.
    config: options by key; keys and value types are checked against the registered ones.
    """

    def __init__(self, opt_level: int = 2, required_pass: Iterable[str] | None = None,
                 disabled_pass: Iterable[str] | None = None, instruments: Iterable[Any] | None = None,
                 config: Mapping[str, Any] | None = None, **_compat: Any) -> None:
        self.opt_level = int(opt_level)
        self.required_pass, self.disabled_pass = _names("required_pass", required_pass), _names("disabled_pass", disabled_pass)
        self.instruments = list(instruments or ())
        self.config = {k: _checked_option(k, v) for k, v in dict(config or {}).items()}

    def __enter__(self) -> PassContext:
        _stack().append(self)
        try:
            self._enter_instruments()
        except BaseException:
            _stack().pop()
            raise
        return self

    def __exit__(self, *exc: Any) -> None:
        _stack().pop()
        self._exit_instruments()

    def _enter_instruments(self) -> None:
        """Enters every instrument; when one fails those entered are left again, and the context has none any more."""
        entered: list[Any] = []
        try:
            for instrument in self.instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except BaseException:
            self.instruments = []
            for instrument in entered:
                instrument.exit_pass_ctx()
            raise

    def _exit_instruments(self) -> None:
        """Leaves every instrument; when one fails the context has none any more."""
        try:
            for instrument in self.instruments:
                instrument.exit_pass_ctx()
        except BaseException:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Replaces the instruments, leaving and entering them as the scope would."""
        self._exit_instruments()
        self.instruments = list(instruments or ())
        self._enter_instruments()

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a pipeline runs the pass under this context."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    def get(self, key: str, default: Any = None) -> Any:
        """A config value, or ``default``."""
        return self.config.get(key, default)

    @staticmethod
    def current() -> PassContext:
        """The innermost context of this thread, or its default one."""
        stack = _stack()
        if stack:
            return stack[-1]
        if not hasattr(_LOCAL, "default"):
            _LOCAL.default = PassContext()
        return _LOCAL.default

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """The registered option keys with their types, as upstream names them."""
        return {k: {"type": _TYPE_NAMES.get(t, t.__name__), "doc": d} for k, (t, d) in sorted(_OPTIONS.items())}


_TYPE_NAMES = {bool: "IntImm", int: "IntImm", float: "FloatImm", str: "runtime.String", list: "Array", dict: "Map"}
_LOCAL = threading.local()


def _stack() -> list[PassContext]:
    if not hasattr(_LOCAL, "stack"):
        _LOCAL.stack = []
    return _LOCAL.stack


def _names(what: str, value: Iterable[str] | None) -> frozenset[str]:
    if isinstance(value, str):
        raise ArgumentError(f"{what} is expected to be a list of pass names, got the string {value!r}")
    return frozenset(value or ())


def _checked_option(key: str, value: Any) -> Any:
    if key not in _OPTIONS:
        import difflib

        near = difflib.get_close_matches(key, _OPTIONS, 3)
        raise ArgumentError(f"PassContext has no config option {key!r}; "
                            + (f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(_OPTIONS))}"))
    want = _OPTIONS[key][0]
    if want in (int, bool, float) and isinstance(value, (int, float, bool)) or hasattr(value, "__int__") and want is int:
        return want(value)
    if not isinstance(value, want):
        raise ArgumentError(f"config option {key!r} is expected to be {want.__name__}, got {type(value).__name__} {value!r}")
    return value


class Pass:
    """Base of all passes: call it with a module to run it."""

    info: PassInfo

    def __call__(self, mod: IRModule) -> IRModule:
        ctx = PassContext.current()
        for name in self.info.required:
            mod = get_pass(name)(mod)
        if not all([i.should_run(mod, self.info) for i in ctx.instruments]):
            return mod
        for instrument in ctx.instruments:
            instrument.run_before_pass(mod, self.info)
        result = self.transform_module(mod, ctx)
        for instrument in ctx.instruments:
            instrument.run_after_pass(result, self.info)
        return result

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The transformation itself."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return repr(self.info)


class ModulePass(Pass):
    """A pass given by a function ``(mod, ctx) -> mod``."""

    def __init__(self, fn: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        self.fn, self.info = fn, info

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self.fn(mod, ctx)


class Sequential(Pass):
    """Passes in order; each is skipped when the context does not enable it."""

    def __init__(self, passes: Sequence[Pass] | None = None, opt_level: int = 0, name: str = "sequential",
                 required: Sequence[str] | None = None, traceable: bool = False) -> None:
        self.passes = list(passes or ())
        self.info = PassInfo(opt_level, name, required, traceable)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for each in self.passes:
            if ctx.pass_enabled(each.info):
                mod = each(mod)
        return mod


def module_pass(pass_func: Any = None, opt_level: int | None = None, name: str | None = None,
                required: Sequence[str] | None = None, traceable: bool = False) -> Any:
    """Makes a pass of a function ``(mod, ctx) -> mod``, or of a class with ``transform_module(mod, ctx)``."""
    return pass_decorator("module_pass", "transform_module", ModulePass)(pass_func, opt_level, name, required, traceable)


def pass_decorator(what: str, method: str, build: Callable[[Any, PassInfo], Pass]) -> Callable[..., Any]:
    """The decorator ``what``: makes passes, by ``build(function, info)``, of functions and of classes that have ``method``."""
    def decorator(pass_func: Any, opt_level: int | None, name: str | None, required: Sequence[str] | None, traceable: bool) -> Any:
        if opt_level is None:
            raise ArgumentError(f"{what}: opt_level is required")

        def create(target: Any) -> Any:
            info = PassInfo(opt_level, name or target.__name__, required, traceable)
            if isinstance(target, type):
                return _pass_class(target, info, lambda made: build(getattr(made, method), info))
            return build(target, info)

        return create(pass_func) if pass_func is not None else create

    return decorator


def _pass_class(cls: type, info: PassInfo, build: Callable[[Any], Pass]) -> type:
    """A pass class around a user's class that holds the transformation as a method."""

    class Wrapped(Pass):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.inst = cls(*args, **kwargs)
            self.info = info
            self._pass = build(self.inst)

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            return self._pass.transform_module(mod, ctx)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["inst"], name)

    functools.update_wrapper(Wrapped.__init__, cls.__init__)
    Wrapped.__name__, Wrapped.__doc__, Wrapped.__module__ = cls.__name__, cls.__doc__, cls.__module__
    return Wrapped


_PASSES: dict[str, Callable[[], Pass]] = {}


def register_pass(name: str, factory: Callable[[], Pass]) -> None:
    """Names a pass so that others can require it and pipelines can list it."""
    _PASSES[name] = factory


_PASS_LIBRARIES: list[Callable[[], Any]] = []


def register_pass_library(load: Callable[[], Any]) -> None:
    """Makes ``load``, which registers passes, run when a name is not found."""
    _PASS_LIBRARIES.append(load)


def get_pass(name: str) -> Pass:
    """The registered pass of that name, with default arguments."""
    while name not in _PASSES and _PASS_LIBRARIES:
        _PASS_LIBRARIES.pop()()
    if name not in _PASSES:
        raise ArgumentError(f"no pass is named {name!r}; known: {', '.join(sorted(_PASSES))}")
    return _PASSES[name]()


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module to standard error and returns it unchanged."""
    def show(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}", file=sys.stderr)
        return mod

    return ModulePass(show, PassInfo(0, "PrintIR"))
