"""The traversal engines: every walk over user data runs on an explicit stack here, never on Python's own.

* :func:`post_order` yields each node of a DAG once, children first.
* :func:`rewrite` rebuilds a DAG bottom-up through one function; shared nodes stay shared.
* :class:`Walker` dispatches on the node's class to ``visit_<ClassName>`` methods written as generators: where a
  recursive visitor would call itself, the method says ``result = yield child`` (or ``yield [child, child]`` for a list
  of results).  Results are remembered per node, so that a DAG costs time linear in its nodes.
"""
from __future__ import annotations

from types import GeneratorType
from typing import Any, Callable, Iterable, Iterator

from .node import Node


def post_order(roots: Node | Iterable[Node], children: Callable[[Node], Iterable[Node]] | None = None) -> Iterator[Node]:
    """Each node reachable from ``roots`` exactly once, after all of its children.

    ``children`` chooses what to descend into (default: every child field).
    """
    get = children or Node.children
    seen: set[int] = set()
    for root in [roots] if isinstance(roots, Node) else list(roots):
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                yield node
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((c, False) for c in reversed(list(get(node))) if id(c) not in seen)


def rewrite(root: Node, fn: Callable[[Node], Node], memo: dict[int, Any] | None = None,
            descend: Callable[[Node], bool] | None = None) -> Node:
    """Rebuilds the DAG under ``root`` children first; ``fn`` maps each (already rebuilt) node to its replacement.

    ``descend(node)`` false leaves that node's children alone (``fn`` is still applied to it).  Unchanged parts keep
    their identity.  ``memo`` maps ``id(original)`` to ``(original, result)``; pass one in to share work between calls.
    """
    memo = {} if memo is None else memo
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        key = id(node)
        if key in memo:
            continue
        if not ready:
            stack.append((node, True))
            if descend is None or descend(node):
                stack.extend((c, False) for c in reversed(node.children()) if id(c) not in memo)
            continue
        rebuilt = node
        if descend is None or descend(node):
            rebuilt = node.map_children(lambda c: memo[id(c)][1])
        memo[key] = (node, fn(rebuilt))
    return memo[id(root)][1]


class Walker:
    """A visitor whose methods are generators, run on an explicit stack.

    Subclasses define ``visit_<ClassName>(self, node)``, looked up along the node's class hierarchy, and finally
    ``visit_default``.  A method returns its result; to visit a child it yields it, and to visit several it yields a list.
    """

    def __init__(self) -> None:
        self.memo: dict[int, tuple[Any, Any]] = {}
        self._methods: dict[type, Callable[[Any], Any]] = {}

    def visit(self, node: Any) -> Any:
        """The result for ``node``; the way in from outside (methods yield instead of calling this)."""
        return self._run(node)

    def visit_default(self, node: Any) -> Any:
        """Visits all children and returns the node, rebuilt if a child's result differs from the child."""
        kids = node.children()
        if not kids:
            return node
        results = yield kids
        table = {id(k): r for k, r in zip(kids, results)}
        return node.map_children(lambda c: table[id(c)])

    def remember(self, node: Any) -> bool:
        """Whether the result for ``node`` may be reused when it is met again (default: always)."""
        return True

    def method_for(self, cls: type) -> Callable[[Any], Any]:
        """The bound method that handles nodes of ``cls``."""
        found = self._methods.get(cls)
        if found is None:
            names = [f"visit_{c.__name__}" for c in cls.__mro__]
            found = next((getattr(self, n) for n in names if hasattr(self, n)), self.visit_default)
            self._methods[cls] = found
        return found

    def _many(self, nodes: Iterable[Any]) -> Any:
        results = []
        for node in nodes:
            results.append((yield node))
        return results

    def _run(self, root: Any) -> Any:
        memo = self.memo
        stack: list[tuple[Any, Any]] = [(None, _ask(root))]
        value: Any = None
        error: BaseException | None = None
        while stack:
            owner, gen = stack[-1]
            try:
                if error is not None:
                    pending, error = error, None
                    wanted = gen.throw(pending)
                else:
                    wanted = gen.send(value)
            except StopIteration as stop:
                stack.pop()
                value = stop.value
                if owner is not None and self.remember(owner):
                    memo[id(owner)] = (owner, value)
                continue
            except BaseException as exc:  # handed to the caller's frame, as a plain call would
                stack.pop()
                if not stack:
                    raise
                error = exc
                continue
            value = None
            if isinstance(wanted, (list, tuple)):
                stack.append((None, self._many(wanted)))
                continue
            hit = memo.get(id(wanted))
            if hit is not None:
                value = hit[1]
                continue
            try:
                result = self.method_for(type(wanted))(wanted)
            except Exception as exc:
                error = exc
                continue
            if isinstance(result, GeneratorType):
                stack.append((wanted, result))
                continue
            value = result
            if self.remember(wanted):
                memo[id(wanted)] = (wanted, value)
        return value


def trampoline(steps: Any) -> Any:
    """Runs a generator whose calls to generators of its kind are written ``result = yield call(...)``.

    Mutually recursive routines written so may nest as deep as memory allows.
    """
    stack = [steps]
    value: Any = None
    while stack:
        try:
            called = stack[-1].send(value)
        except StopIteration as stop:
            stack.pop()
            value = stop.value
        else:
            stack.append(called)
            value = None
    return value


def _ask(node: Any) -> Any:
    return (yield node)
