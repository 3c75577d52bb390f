"""Where tests stand: the tree mirrors the packages, and only ``tests.testing`` is shared."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
TESTS = ROOT / "tests"
# Folders without a product package of that name.
OTHERS = {
    "adversary": "campaigns/adversary",
    "kernels": "kernels",
    "setup": "scripts",
    "testing": "tests/testing",
}
FILES = sorted(
    file.relative_to(ROOT).as_posix()
    for folder in ("tests", "campaigns", "bench", "kernels")
    for file in (ROOT / folder).rglob("*.py")
)


@cache
def parsed(file: str) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
    """The imports of a file, and its marks of slow tests: line and reason.

    An import is a module or a name, with its dots; a mark that is no call has no reason.
    """
    names, marks, reasons = list[str](), list[ast.Attribute](), dict[int, str]()
    tree = ast.parse((ROOT / file).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            names += (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and node.attr == "slow":
            marks.append(node)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            reasons[id(node.func)] = str(node.args[0].value)
    slow = (node for node in marks if ast.unparse(node) == "pytest.mark.slow")
    return tuple(names), tuple((node.lineno, reasons.get(id(node), "")) for node in slow)


def test_only_modules_made_to_be_shared_are_imported_from_the_tests() -> None:
    private = [
        f"{file} imports {name}"
        for file in FILES
        for name in parsed(file)[0]
        if name.split(".")[0] == "tests" and not name.startswith("tests.testing.")
    ]
    assert not private, "move what is shared to tests/testing/<package>, or into a conftest fixture"


def test_no_test_is_among_what_is_shared() -> None:
    assert not list((TESTS / "testing").rglob("test_*.py"))
    elsewhere = (file for file in FILES if not file.startswith("tests/"))
    assert not [file for file in elsewhere if Path(file).name.startswith("test_")]


def test_folders_are_those_of_the_product() -> None:
    folders = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")}
    for folder in sorted(folders - {Path()}):
        product = OTHERS.get(folder.parts[0], folder)
        assert (ROOT / product).is_dir(), f"tests/{folder} has no product folder of its name"
    assert {name for name, of in OTHERS.items() if (ROOT / name).is_dir() and of != name} == set()


def test_each_folder_of_the_product_has_tests_of_its_own() -> None:
    folders = [
        init.parent for package in PACKAGES for init in (ROOT / package).rglob("__init__.py")
    ]
    paths = sorted(folder.relative_to(ROOT).as_posix() for folder in folders)
    assert not [path for path in paths if not list((TESTS / path).glob("test_*.py"))]


def test_slow_tests_say_why() -> None:
    wrong = [
        f"{file}:{line}"
        for file in FILES
        for line, reason in parsed(file)[1]
        if len(reason.split()) < 2
    ]
    assert not wrong


def test_no_init_file_is_empty() -> None:
    inits = [file for file in FILES if file.endswith("__init__.py")]
    assert not [file for file in inits if not (ROOT / file).read_text().strip()]
