"""Every assumption that a report can list is a row of one table (rule 40)."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given

from campaigns.assumption_table import written
from quoll.assumptions import (
    KINDS,
    OF_ANOTHER_PLATFORM,
    OF_PLATFORM,
    STANDARD,
    UNCHANGED,
    Assumption,
    kind_of,
    listed,
    stated,
    table,
)
from quoll.extraction.extract import extract
from quoll.facts import Fact, LoopFact, LoopParameter, Replaced, Returns, parse
from quoll.image.image import Image
from tests.testing.harness.build import ROOT
from tests.testing.quoll.building import build
from tests.testing.quoll.drawn_facts import facts
from wcet.platforms import platform

PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
TABLE = ROOT / "quoll" / "assumptions.py"


def test_each_row_is_told_from_all_others_and_says_what_its_columns_ask() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        fields = {name: f"some {name}" for name in re.findall(r"{(\w+)}", kind.template)}
        assert kind_of(kind.text(**fields)) is kind
        assert all((kind.proved_by, kind.refuted_by, kind.checked_by))


@given(facts())
def test_every_fact_is_listed_as_the_row_of_its_form(fact: Fact) -> None:
    if isinstance(fact, LoopFact | LoopParameter):
        return  # these are listed with the evidence of a loop
    more = {Replaced: (STANDARD, UNCHANGED), Returns: (STANDARD,)}.get(type(fact), ())
    kind = kind_of(stated(fact, *more))
    opening = kind.template.removeprefix("fact: {source}: ").partition("{")[0]
    assert kind.template.startswith("fact: ")
    assert str(fact).startswith(opening)
    words = re.findall(r"[a-z]{4,}", re.sub(r"{\w+}", "", kind.template.partition(";")[0]))
    assert set(words) - {"fact"} <= set(re.findall(r"[a-z]+", str(fact)))


@pytest.mark.parametrize("name", platform.names())
def test_what_a_board_that_comes_with_the_project_assumes_has_rows_of_its_own(name: str) -> None:
    board = platform.load(name)
    texts = [*board.assumptions, *board.pending_assumption()]
    assert texts
    assert OF_ANOTHER_PLATFORM not in map(kind_of, texts)


def test_no_board_lacks_the_keys_that_the_table_describes() -> None:
    used = {kind_of(text) for name in platform.names() for text in platform.load(name).assumptions}
    assert set(OF_PLATFORM) <= used


def test_what_the_table_does_not_make_is_a_defect() -> None:
    with pytest.raises(KeyError, match=r"assumptions\.py.*all goes well"):
        listed([Assumption("all goes well")])
    with pytest.raises(KeyError):
        table([Assumption("all goes well")])


@pytest.mark.slow
def test_only_the_table_makes_assumptions() -> None:
    """The type checker then refuses every other string where assumptions are passed on."""
    for path in MODULES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and path != TABLE:
                called = ast.unparse(node.func)
                assert called.rpartition(".")[2] != "Assumption", (path, node.lineno)
                made = called.rpartition(".")[2] == "cast" and "Assumption" in ast.unparse(node)
                assert not made, (path, node.lineno)


@pytest.mark.slow
def test_assumptions_are_passed_on_in_their_own_type() -> None:
    """A field, an argument or a property of that name is not of plain strings."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            hints: list[tuple[str, ast.expr | None]] = []
            if isinstance(node, ast.AnnAssign):
                hints = [(ast.unparse(node.target), node.annotation)]
            elif isinstance(node, ast.FunctionDef):
                hints = [(node.name, node.returns)]
            for name, hint in hints:
                if name.rpartition(".")[2].strip("_") == "assumptions" and hint is not None:
                    text = ast.unparse(hint)
                    assert "Assumption" in text or text == "str", (path, node)


def test_the_documentation_shows_the_table() -> None:
    """Written by ``make campaign-assumption_table``."""
    assert written() in (ROOT / "docs" / "soundness.md").read_text(encoding="utf-8")


def test_a_read_only_region_is_listed_with_its_place() -> None:
    """The listed text lacked the file and the line."""
    image = Image.load(build(".text\n.global main\nmain: bx lr\n", language="asm"))
    stated_facts = parse("region code from 0x8000 to 0x8fff is read-only\n", "my.facts")
    program = extract(image, [0x8000], stated_facts)
    assert program.assumptions == (stated(stated_facts.facts[0]),)
    assert program.assumptions[0].startswith("fact: my.facts:1: region code")
