"""Anchored source lines: a fact follows its text, or is refused, and is never about another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quoll.errors import FactsError
from quoll.facts.line_anchors import LineAnchors
from quoll.facts.read import load, parse
from quoll.image.image import Image
from tests.testing.quoll.building import build

FIRST = "for (int i = 0; i < n; i++) s += a[i & 63];"
SECOND = "for (int i = 0; i < m; i++) s += b[i & 63];"
SOURCE = """\
{before}
int a[64], b[64]; volatile int n_, m_;
__attribute__((noinline)) int f(void) {{
    int s = 0, n = n_, m = m_;
    {first}
    {second}
    return s; }}
__attribute__((noinline)) int g(int n) {{
    int s = n_;
    {other}
    return s; }}
int main(void) {{ return f() + g(3); }}
"""


def lines(
    first: str = FIRST, second: str = SECOND, other: str = "", before: str = "", language: str = "c"
) -> LineAnchors:
    source = SOURCE.format(first=first, second=second, other=other, before=before)
    elf = build(source, language=language)
    return LineAnchors(Image.load(elf), elf, elf.parent)


def anchored(of: LineAnchors, number: int) -> str | None:
    return of.anchored(of.image.addresses_of_line("prog.c", number)[0])


def place(of: LineAnchors, number: int) -> str:
    text = anchored(of, number)
    assert text is not None
    return text


OLD = place(lines(), 5), place(lines(), 6)


def test_a_line_is_found_where_it_was() -> None:
    found = lines()
    assert found.followed(f"loop {OLD[0]}, {OLD[1]} at most 3", "k:1") == (
        "loop prog.c:5, prog.c:6 at most 3"
    )
    assert found.remarks == []


@pytest.mark.parametrize("comment", ["", "  /* a */ ", "// b"])
def test_swapped_and_moved_loops_are_followed(comment: str) -> None:
    found = lines(SECOND + comment, FIRST, before="\n// more\n")
    assert [found.followed(text, "k:1") for text in OLD] == ["prog.c:8", "prog.c:7"]
    assert len(found.remarks) == 2


def test_a_text_that_is_gone_is_an_error() -> None:
    """Also where it stands in another function, or in a comment only."""
    changed = "for (int i = 0; i <= n; i++) s += a[i & 63];"
    found = lines(f"{changed} // {FIRST}", other=FIRST)
    with pytest.raises(FactsError, match="is on no line of its function") as refused:
        found.followed(OLD[0], "k.facts:1")
    assert refused.value.hint is not None
    assert changed in refused.value.hint
    assert place(found, 5) in refused.value.hint


def test_a_text_that_is_there_twice_is_an_error() -> None:
    found = lines(FIRST, FIRST)
    with pytest.raises(FactsError, match="is on lines 5, 6: nothing says which one"):
        found.followed(OLD[0], "k.facts:1")
    assert anchored(found, 5) is None


def test_the_same_text_in_two_functions_is_two_lines() -> None:
    found = lines(other=FIRST)
    assert place(found, 5) == OLD[0]
    assert place(found, 10) != OLD[0]
    assert found.followed(place(found, 10), "k:1") == "prog.c:10"


def test_a_source_that_cannot_be_compared_is_an_error(tmp_path: Path) -> None:
    of = lines()
    nowhere = LineAnchors(of.image, of.kernel, tmp_path)
    assert nowhere.anchored(of.image.addresses_of_line("prog.c", 5)[0]) is None
    with pytest.raises(FactsError, match="cannot be read") as refused:
        nowhere.followed(OLD[0], "k.facts:1")
    assert "prog.c:5" in (refused.value.hint or "")
    with pytest.raises(FactsError, match="cannot be compared here"):
        parse(f"loop {OLD[0]} at most 3", "k.facts")


def test_a_line_is_not_followed_in_a_source_that_is_not_compiled(tmp_path: Path) -> None:
    """The line table has the old numbers."""
    of = lines()
    (tmp_path / "prog.c").write_text("\n" + (of.folder / "prog.c").read_text())
    newer = LineAnchors(of.image, of.kernel, tmp_path)
    with pytest.raises(FactsError, match=r"is on line 6 now, and .* is newer than prog\.elf"):
        newer.followed(OLD[0], "k.facts:1")
    assert anchored(newer, 5) is None


def test_facts_files_are_read_with_today_s_lines(tmp_path: Path) -> None:
    facts = tmp_path / "k.facts"
    facts.write_text(f"loop {OLD[0]}, {OLD[1]} at most 3\n{OLD[0]} executes at most 9 times\n")
    moved = lines(before="\n\n")
    read = load([facts], moved)
    assert [fact.names() for fact in read.facts] == [("prog.c:7",), ("prog.c:8",), ("prog.c:7",)]
    assert [text.partition(": ")[0] for text in read.remarks] == [f"{facts}:1"] * 2 + [f"{facts}:2"]


def test_lines_of_assembly(tmp_path: Path) -> None:
    (tmp_path / "prog.S").write_text(
        "main: mov r0, #9 @ nine\n1: subs r0, r0, #1\n bne 1b\n bx lr\n"
    )
    command = ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-g", "-nostdlib", "-Wl,-e,main"]
    subprocess.run([*command, "prog.S", "-o", "prog.elf"], cwd=tmp_path, check=True)
    elf = tmp_path / "prog.elf"
    of = LineAnchors(Image.load(elf), elf, tmp_path)
    text = of.anchored(of.image.addresses_of_line("prog.S", 2)[0])
    assert text is not None
    assert of.followed(text, "k:1") == "prog.S:2"
