"""Every assumption that a report can list is a record of a row of one table (rule 40)."""

from __future__ import annotations

import ast
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns.assumption_table import written
from quoll.assumptions import (
    KINDS,
    OF_ANOTHER_PLATFORM,
    OF_PLATFORM,
    S1,
    Assumption,
    AssumptionKind,
    stated,
    table,
)
from quoll.extraction.extract import extract
from quoll.facts.fact import Fact
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.results.cache_key import key_of
from quoll.results.serialization import from_text, to_text
from tests.testing.harness.build import ROOT
from tests.testing.quoll.building import build
from tests.testing.quoll.drawn_facts import facts
from wcet.platforms import platform_model

PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
TABLE = ROOT / "quoll" / "assumptions.py"
WORDS = st.from_regex(r"[a-z]{3}[0-9]{3}", fullmatch=True)  # none of them is in a template
SOURCES = st.from_regex(r"[A-Z]{3}:[0-9]", fullmatch=True)


@st.composite
def assumptions(draw: st.DrawFn, kind: AssumptionKind) -> Assumption:
    """An assumption of ``kind``."""
    values = {name: draw(st.one_of(WORDS, st.integers(0, 99))) for name in sorted(kind.fields)}
    return kind.of(draw(SOURCES), **values)


@pytest.mark.slow("many random values")
@given(st.data())
def test_records_survive_every_way_in_which_they_are_stored(data: st.DataObject) -> None:
    assumption = data.draw(assumptions(data.draw(st.sampled_from(KINDS))))
    for copied in (pickle.loads(pickle.dumps(assumption)), from_text(to_text(assumption))):
        assert copied == assumption
        assert hash(copied) == hash(assumption)
        assert copied.kind is assumption.kind
        assert key_of("q", copied) == key_of("q", assumption)
    (row,) = json.loads(json.dumps(table([assumption])))
    assert row["text"] == str(assumption)
    assert row["kind"] == assumption.kind.name


@given(st.data())
def test_the_text_has_every_value_and_no_field_in_braces(data: st.DataObject) -> None:
    assumption = data.draw(assumptions(data.draw(st.sampled_from(KINDS))))
    text = str(assumption)
    assert all(str(value) in text for _, value in assumption.values)
    assert ("{source}" in assumption.kind.template) == (assumption.source in text)
    assert "{" not in text


@pytest.mark.slow("many random values")
@given(st.fixed_dictionaries({name: WORDS for kind in KINDS for name in kind.fields}), SOURCES)
def test_no_two_kinds_print_the_same_text(values: dict[str, str], source: str) -> None:
    texts = {str(kind.of(source, **{n: values[n] for n in kind.fields})) for kind in KINDS}
    assert len(texts) == len(KINDS) == len({kind.name for kind in KINDS})


def test_every_row_says_what_its_columns_ask() -> None:
    for kind in KINDS:
        assert all((kind.proved_by, kind.refuted_by, kind.checked_by))


@pytest.mark.parametrize("values", [{}, {"exits": "a", "more": "b"}, {"exit": "a"}])
def test_an_assumption_has_a_value_for_each_field_and_no_other(values: dict[str, str]) -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "handed over")
    with pytest.raises(AssertionError, match="handed over"):
        kind.of(**values)


@given(facts())
def test_every_fact_is_listed_as_the_row_of_its_form(fact: Fact) -> None:
    assumption = stated(fact)
    assert assumption.kind is fact.assumption
    assert assumption.source == str(fact.source)
    assert str(fact) in str(assumption)
    assert assumption.moved({str(fact.source): "new.facts:7"}).source == "new.facts:7"
    assert assumption.moved({"other.facts:7": "new.facts:7"}) is assumption


@pytest.mark.parametrize("name", platform_model.names())
def test_what_a_board_that_comes_with_the_project_assumes_has_rows_of_its_own(name: str) -> None:
    board = platform_model.load(name)
    listed = [*board.assumptions, *board.pending_assumption()]
    assert listed
    assert OF_ANOTHER_PLATFORM not in (assumption.kind for assumption in listed)


def test_no_board_lacks_the_keys_that_the_table_describes() -> None:
    used = {
        a.kind for name in platform_model.names() for a in platform_model.load(name).assumptions
    }
    assert set(OF_PLATFORM) <= used


def test_a_name_that_the_table_does_not_have_is_a_defect() -> None:
    with pytest.raises(KeyError, match="all goes well"):
        table([Assumption("all goes well")])


def test_assumptions_are_in_order_of_kind_and_place() -> None:
    (kind,) = (kind for kind in KINDS if kind.name == "fact: ignore")
    earlier, later = kind.of("a:2", place="b"), kind.of("b:1", place="a")
    assert sorted([later, earlier, S1.of()]) == [S1.of(), earlier, later]


@pytest.mark.slow("many random programs")
def test_only_the_table_makes_assumptions() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and path != TABLE:
                called = ast.unparse(node.func)
                assert called.rpartition(".")[2] != "Assumption", (path, node.lineno)


def test_the_documentation_shows_the_table() -> None:
    """Written by ``make campaign-assumption_table``."""
    assert written() in (ROOT / "docs" / "soundness.md").read_text(encoding="utf-8")


def test_a_read_only_region_is_listed_with_its_place() -> None:
    """The listed text lacked the file and the line."""
    image = Image.load(build(".text\n.global main\nmain: bx lr\n", language="asm"))
    stated_facts = parse("region code from 0x8000 to 0x8fff is read-only\n", "my.facts")
    program = extract(image, [0x8000], locate(stated_facts, image))
    assert program.assumptions == (stated(stated_facts.facts[0]),)
    assert str(program.assumptions[0]).startswith("fact: my.facts:1: region code")
