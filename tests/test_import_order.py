"""The rooms import only from rooms before them, and no modules import each other in a circle."""
from __future__ import annotations

import ast
from pathlib import Path

import anchorleg

ROOT = Path(anchorleg.__file__).parent

# Lowest first; a module belongs to the longest prefix that fits.
ORDER = [
    ["support"],
    ["runtime"],
    ["ir"],
    ["target"],
    ["tir"],
    ["arith"],
    ["tir.transform", "tir.interpreter", "tir.verify", "tir.analysis", "tir.usage", "tir.block_access", "tir.usmp"],
    ["script"],
    ["target.codegen", "target.build"],
    ["te"],
    ["driver", "rpc"],
    ["autotvm"],
    ["topi"],
    ["relay"],
    ["relay.backend"],
    ["relay.build_module"],
    ["relay.executors", "relay.vm", "relay.task_extraction", "relay.frontend.common"],
    ["micro"],
    ["cli", "__main__", "contrib", "testing", "relay.testing", "micro.testing", "as_tvm", "transform", "instrument", "error", "nd", "__init__"],
]
RANK = {room: level for level, rooms in enumerate(ORDER) for room in rooms}


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room_of(module: str) -> str:
    parts = module.split(".")
    for size in range(len(parts), 0, -1):
        if ".".join(parts[:size]) in RANK:
            return ".".join(parts[:size])
    raise AssertionError(f"{module} belongs to no room: add it to ORDER")


MODULES = {module_name(p): p for p in ROOT.rglob("*.py")}


def _resolve(path: Path, node: ast.ImportFrom) -> str | None:
    if not node.level:
        module = node.module or ""
        return module.removeprefix("anchorleg").lstrip(".") if module.split(".")[0] == "anchorleg" else None
    base = list(path.relative_to(ROOT).parent.parts)
    base = base[: len(base) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def imports(path: Path, top_level_only: bool) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = _eager(tree) if top_level_only else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.ImportFrom):
            continue
        base = _resolve(path, node)
        if base is None:
            continue
        for alias in node.names:
            full = f"{base}.{alias.name}".lstrip(".")
            found.add(full if full in MODULES else base)
    return {f for f in found if f in MODULES}


def _eager(tree: ast.Module) -> list[ast.AST]:
    """Imports that run when the module is loaded."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        found.append(node)
        stack.extend(ast.iter_child_nodes(node))
    return found


def test_rooms_import_downwards_only() -> None:
    wrong = []
    for module, path in MODULES.items():
        here = RANK[room_of(module)]
        wrong += [f"{module} imports {other}" for other in sorted(imports(path, False)) if RANK[room_of(other)] > here]
    assert not wrong, f"{len(wrong)} violations:\n" + "\n".join(wrong)


def test_no_import_cycles() -> None:
    graph = {m: imports(p, True) - {m} for m, p in MODULES.items()}
    state: dict[str, int] = {}
    cycles: list[str] = []
    for root in graph:
        stack = [(root, iter(sorted(graph[root])))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            module, rest = stack[-1]
            nxt = next(rest, None)
            if nxt is None:
                state[module] = 2
                stack.pop()
            elif nxt not in state:
                state[nxt] = 1
                stack.append((nxt, iter(sorted(graph[nxt]))))
            elif state[nxt] == 1:
                names = [m for m, _ in stack]
                cycles.append(" -> ".join([*names[names.index(nxt):], nxt]))
    assert not cycles, f"{len(cycles)} cycles:\n" + "\n".join(cycles)


def test_the_guard_sees_an_upward_import(tmp_path: Path) -> None:
    text = "from ..relay.expr import Var\n"
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.ImportFrom)
    assert _resolve(ROOT / "ir" / "probe.py", node) == "relay.expr"
    assert RANK[room_of("relay.expr")] > RANK[room_of("ir.probe")]
