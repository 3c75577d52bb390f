"""The folders are the data flow: each sub-package imports only itself and earlier ones.

``ORDER`` is the table of contents of the project, first to last. Modules directly in a package are
under its own name; the position of that name decides which packages they may import.
"""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
ORDER = (
    "quoll", "quoll.results", "quoll.processes", "quoll.intervals", "quoll.graph", "quoll.image",
    "quoll.arm", "quoll.semantics", "quoll.source", "quoll.exchange", "quoll.facts", "quoll.cfg",
    "quoll.own_objects", "quoll.abstract_domain", "quoll.indirect", "quoll.extraction",
    "quoll.inlining", "quoll.value_analysis", "quoll.preemption", "quoll.recordings",
    "quoll.listing",
    "cache", "cache.executed",
    "pipeline",
    "loopbounds.terms", "loopbounds.budgets", "loopbounds.transition", "loopbounds.nusmv",
    "loopbounds.smt", "loopbounds.reduction",
    "loopbounds.slicing", "loopbounds.execution", "loopbounds.sampling", "loopbounds.strategies",
    "loopbounds.proof", "loopbounds",
    "ilp.solvers", "ilp.constraints", "ilp.paths", "ilp",
    "wcet.platforms", "wcet.result_classes", "wcet.analysis", "wcet.executions", "wcet.refinement",
    "wcet.masked", "wcet.proving", "wcet.latency",
    "wcet.reports", "wcet.gate", "wcet.page", "wcet.advice", "wcet.pinning", "wcet.sweep",
    "wcet", "wcet.commands",
)  # fmt: skip
MOST = 24  # modules in a folder
FILES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in FILES}


def folder(module: str) -> str:
    return ".".join(MODULES[module].parent.relative_to(ROOT).parts)


@cache
def parsed(module: str) -> tuple[tuple[ast.Import | ast.ImportFrom, ...], tuple[str, ...]]:
    """The imports of a module, also for type checkers, and the names of its classes."""
    nodes = list(ast.walk(ast.parse(MODULES[module].read_text())))
    imports = tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return imports, tuple(node.name for node in nodes if isinstance(node, ast.ClassDef))


def imported(module: str) -> Iterator[str]:
    """The modules of this project that a module imports."""
    for node in parsed(module)[0]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
            continue
        assert node.level == 0, "relative imports hide the data flow"
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            if name in MODULES or node.module in MODULES:
                yield name if name in MODULES else str(node.module)


def importing(origin: str, names: Set[str], *, others: bool = False) -> set[str]:
    """The modules that import one of the names, or another one, from a module."""
    return {
        module
        for module in MODULES
        for node in parsed(module)[0]
        if isinstance(node, ast.ImportFrom) and node.module == origin
        if any((alias.name in names) != others for alias in node.names)
    }


def test_imports_follow_the_order_of_folders() -> None:
    position = {name: at for at, name in enumerate(ORDER)}
    later = [
        f"{module} imports {used}"
        for module in MODULES
        for used in imported(module)
        if position[folder(used)] > position[folder(module)]
    ]
    assert not later


def test_no_module_imports_itself_in_the_end() -> None:
    graph = nx.DiGraph((module, used) for module in MODULES for used in imported(module))
    cycles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert not cycles


def test_a_folder_can_be_read_at_once() -> None:
    modules = Counter(folder(m) for m, path in MODULES.items() if path.name != "__init__.py")
    assert modules.keys() <= set(ORDER)
    assert not {name: count for name, count in modules.items() if count > MOST}


def test_every_module_lists_its_public_names() -> None:
    wrong = []
    for module, path in MODULES.items():
        if path.name != "__init__.py":
            loaded = importlib.import_module(module)
            names = getattr(loaded, "__all__", None)
            if not loaded.__doc__:
                wrong.append(f"{module} has no docstring")
            if names is None:
                wrong.append(f"{module} has no __all__")
            missing = [name for name in names or () if not hasattr(loaded, name)]
            wrong += [f"{module} lists {name}, and has none" for name in missing]
    assert not wrong


def test_entries_have_one_pipeline() -> None:
    """``wcet loops`` had its own, which knew no sharing and refused less."""
    stages = {"bound_loops", "bounds_by_counting", "charge", "classify", "expand", "inlined"}
    found = {
        module
        for module in MODULES
        for node in parsed(module)[0]
        if module.startswith("wcet.") and isinstance(node, ast.ImportFrom)
        if stages & {alias.name for alias in node.names}
    }
    assert found == {"wcet.analysis.entry_stages"}


def test_class_names_are_distinct() -> None:
    """A reader who meets a name knows which class it is."""
    found: dict[str, list[str]] = {}
    for module in MODULES:
        for name in parsed(module)[1]:
            if not name.startswith("_"):
                found.setdefault(name, []).append(module)
    assert not {name: where for name, where in found.items() if len(where) > 1}


def test_places_of_facts_are_found_once() -> None:
    """Later stages take them from ``LocatedFacts``; commands name entries, which are no facts."""
    found = importing("quoll.facts.fact_places", {"FactPlace"}, others=True)
    entries = {"wcet.analysis.entries", "wcet.commands.listing"}
    assert found == {"quoll.facts.located", *entries}
    located = importing("quoll.facts.located", {"locate"})
    # facts of their own
    asking = {"wcet.advice.count_suggestions", "wcet.commands.path", "wcet.analysis.summaries"}
    asking |= {"wcet.proving.doubts"}
    assert located == {"wcet.analysis.run", "wcet.commands.listing", *asking}
