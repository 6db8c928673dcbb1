"""What tests must keep to, so that each of them can fail; and the package, so that there is one loop over time."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("test_*.py"))
CHECKS = re.compile(r"assert|raises|warns|check|error_of")  # names of what may fail a test


def own_nodes(function: ast.AST) -> list[ast.AST]:
    """All nodes of a function but those of functions inside it."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(function):
        found.append(child)
        if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            found += own_nodes(child)
    return found


def names_called(nodes: list[ast.AST]) -> list[str]:
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return [getattr(function, "attr", getattr(function, "id", "")) for function in called]


def complaints(text: str) -> list[str]:
    """What is wrong with the tests of a file."""
    found = []
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "raising":
            found.append(f"line {node.lineno}: a patch must name what exists, so it takes no `raising`")
        if not (isinstance(node, ast.FunctionDef) and node.name.startswith("test_")):
            continue
        inside = own_nodes(node)
        if any(isinstance(part, ast.Return) for part in inside):
            found.append(f"line {node.lineno}: {node.name} returns; split it, so that every case is compared")
        asserts = any(isinstance(part, ast.Assert) for part in ast.walk(node))
        if not asserts and not any(CHECKS.search(name) for name in names_called(list(ast.walk(node)))):
            found.append(f"line {node.lineno}: {node.name} asserts nothing")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_every_test_can_fail(file: Path) -> None:
    assert complaints(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("patch.setattr('a.b', 0, raising=False); assert True", "takes no `raising`"),
        ("return; assert True", "test_it returns"),
        ("print(1)", "asserts nothing"),
    ],
)
def test_the_check_would_notice(line: str, text: str) -> None:
    (complaint,) = complaints(f"def test_it(patch):\n    {line}\n")
    assert text in complaint
    assert complaints("def test_it():\n    def inner():\n        return 1\n    assert inner()\n") == []


# --- one loop over time ----------------------------------------------------------------------------------------

SOURCE = TESTS.parent / "src" / "bregpath"
# Where a `while` may stand: the loop itself, a block that is done again until it is proved, steps; what has no time.
LOOPS = ("flow/integrate.py", "flow/screened.py", "_kernels/", "plots/", "datasets/")
# Where a flow is asked to advance: only in the loop. Chains of samplers advance too.
ADVANCES = ("flow/integrate.py", "flow/glbi.py", "flow/giss.py", "_kernels/", "graphs/chains.py")


def loops_over_time(text: str, name: str) -> list[str]:
    """What a file of the package does that only the one loop over time may do."""
    found, tree = [], ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and not name.startswith(LOOPS):
            found.append(f"{name}, line {node.lineno}: a second loop; give `integrate` another tick, or use `for`")
        called = node.func if isinstance(node, ast.Call) else None
        if getattr(called, "attr", "") == "advance" and not name.startswith(ADVANCES):
            found.append(f"{name}, line {node.lineno}: a flow is advanced outside the loop")
    return found


@pytest.mark.skipif(not SOURCE.exists(), reason="the package is not beside its tests")
def test_one_loop_over_time() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    found = [loops_over_time(file.read_text(encoding="utf-8"), file.relative_to(SOURCE).as_posix()) for file in files]
    assert len(files) > 50 and sum(found, []) == []


def test_a_second_loop_would_be_noticed() -> None:
    text = "def trace(flow, state, until):\n    while state.t < until:\n        state = flow.advance(state, until)\n"
    assert len(loops_over_time(text, "selection/cross_validation.py")) == 2
    assert loops_over_time(text, "flow/integrate.py") == []
