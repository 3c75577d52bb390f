"""Builds of one program under one facts file: the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.builds import HEAD, Build, applicable, builds, rows
from quoll.image.image import Image
from tests.testing.quoll.building import build

SOURCE = """
unsigned left;
struct list { struct list *next; } *volatile head;
static unsigned __attribute__((NOINLINE)) walk(void) {
    unsigned n = 0;
    for (struct list *one = head; one; one = one->next) n++;
    return n;
}
unsigned main(void) { left = walk(); return left; }
"""
FACTS = "list at prog.c:6 has at most 7 elements\n\nloop absent, prog.c:1, main at most 9\n"


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("builds") / "family.facts"
    file.write_text(FACTS, "utf-8")
    return file


def test_a_fact_is_stated_where_the_build_has_its_place(facts: Path) -> None:
    image = Image.load(build(SOURCE, "-DNOINLINE=noinline"))
    assert applicable(facts, image) == [
        (1, "list at prog.c:6 has at most 7 elements"),
        (3, "loop main at most 9"),
    ]


def test_the_first_word_in_the_name_of_a_build_chooses_its_files() -> None:
    elves = [Path(f"k-{name}.elf") for name in ("b-O2", "a-O2", "c-O2")]
    chosen = builds(elves, ["a-=a.toml", "b-=b.toml"], ["O2=two.facts", "all.facts"])
    two = Path("two.facts")
    assert list(chosen) == [Build(elves[1], "a.toml", two), Build(elves[0], "b.toml", two)]


@pytest.mark.slow("analyses a program twice, in processes of their own")
def test_a_row_has_the_bound_or_the_questions(tmp_path: Path) -> None:
    elf = build(SOURCE, "-DNOINLINE=noinline")
    stated, nothing = tmp_path / "a.facts", tmp_path / "b.facts"
    stated.write_text("list at prog.c:6 has at most 7 elements\n", "utf-8")
    nothing.write_text("", "utf-8")
    (with_facts,) = rows(Build(elf, "kzm", stated), ["main"], 60)
    (without,) = rows(Build(elf, "kzm", nothing), ["main"], 60)
    bounded, asked = dict(zip(HEAD, with_facts, strict=True)), dict(zip(HEAD, without, strict=True))
    assert int(bounded["bound, cycles"].replace(",", "")) > 100
    assert (bounded["facts"], bounded["questions"]) == ("1", "none")
    assert (asked["bound, cycles"], asked["questions"]) == ("", "1 loops")
