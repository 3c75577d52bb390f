"""The folders are the data flow: each sub-package imports only itself and earlier ones.

``ORDER`` is the table of contents of the project, first to last. Modules directly in a package are
under its own name; where that name stands says what they may import.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
ORDER = (
    "quoll", "quoll.kept", "quoll.processes", "quoll.words", "quoll.graph", "quoll.image",
    "quoll.arm", "quoll.semantics", "quoll.source", "quoll.exchange", "quoll.facts", "quoll.cfg",
    "quoll.domain", "quoll.indirect", "quoll.extraction", "quoll.inlining",
    "quoll.values", "quoll.preemption", "quoll.recordings", "quoll.listing",
    "cache",
    "pipeline",
    "loopbounds.terms", "loopbounds.transition", "loopbounds.nusmv", "loopbounds.smt",
    "loopbounds.reduction",
    "loopbounds.slicing", "loopbounds.execution", "loopbounds.proof", "loopbounds",
    "ilp.solvers", "ilp.constraints", "ilp.paths", "ilp",
    "wcet.platforms", "wcet.analysis", "wcet.executions", "wcet.reports", "wcet.gate",
    "wcet.page", "wcet.advice", "wcet", "wcet.commands",
)  # fmt: skip
MOST = 23  # modules in a folder
FILES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in FILES}


def folder(module: str) -> str:
    return ".".join(MODULES[module].parent.relative_to(ROOT).parts)


def imports(path: Path) -> Iterator[str]:
    """The modules of this project that a file imports, those for type checkers included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the data flow"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in MODULES or node.module in MODULES:
                    yield name if name in MODULES else str(node.module)


@pytest.mark.parametrize("module", MODULES)
def test_imports_follow_the_order_of_folders(module: str) -> None:
    position = {name: at for at, name in enumerate(ORDER)}
    here = position[folder(module)]
    later = [used for used in imports(MODULES[module]) if position[folder(used)] > here]
    assert not later


@pytest.mark.slow
def test_no_module_imports_itself_in_the_end() -> None:
    graph = nx.DiGraph((m, used) for m, path in MODULES.items() for used in imports(path))
    cycles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert not cycles


@pytest.mark.parametrize("name", ORDER)
def test_a_folder_can_be_read_at_once(name: str) -> None:
    modules = [m for m in MODULES if folder(m) == name and MODULES[m].name != "__init__.py"]
    assert len(modules) <= MOST


@pytest.mark.parametrize("name", [n for n in ORDER if "." in n])
def test_a_folder_says_what_it_takes_and_gives(name: str) -> None:
    text = importlib.import_module(name).__doc__ or ""
    assert re.search(r"^Takes ", text, re.M), name
    assert re.search(r"^Gives ", text, re.M), name


@pytest.mark.parametrize("module", [m for m in MODULES if MODULES[m].name != "__init__.py"])
def test_every_module_lists_its_public_names(module: str) -> None:
    loaded = importlib.import_module(module)
    assert loaded.__doc__
    assert all(hasattr(loaded, name) for name in loaded.__all__)


@pytest.mark.slow
def test_class_names_are_distinct() -> None:
    """A reader who meets a name knows which class it is."""
    found: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    assert not {name: where for name, where in found.items() if len(where) > 1}
