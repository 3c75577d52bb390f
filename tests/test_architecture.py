"""The folders are the data flow: a package imports only itself and earlier ones."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ORDER = ["quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet"]
ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(p for package in ORDER for p in (ROOT / package).rglob("*.py"))


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all packages that a module imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the data flow"
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_data_flow(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    later = set(ORDER[ORDER.index(package) + 1 :])
    assert not imported(ast.parse(path.read_text())) & later


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.name != "__init__.py"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_module_lists_its_public_names(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert module.__doc__
    assert all(hasattr(module, name) for name in module.__all__)
