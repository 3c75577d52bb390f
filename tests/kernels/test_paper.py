"""``make paper``: its parts make all tables, in any order, and failures are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.paper import ANALYSES, BUILDS, PARTS, Part, evaluate
from campaigns.tables import PAGES, SECTION
from tests.testing.harness import build
from wcet.sweep.cluster import ResultFolder

OTHERS = {("bounds.md", "addresses"), ("bounds.md", "translations")}  # of campaigns.kernel_tables
MODULE = "tests.testing.wcet.paper_part"


def test_the_parts_make_each_table_of_the_pages_once() -> None:
    """Also one of a page without CSV files."""
    made = [(Path(part.page).name, table) for part in PARTS for table in part.tables]
    marked = {
        (Path(page).name, section["name"])
        for page in PAGES
        for section in SECTION.finditer((build.ROOT / page).read_text(encoding="utf-8"))
    }
    assert len(made) == len(set(made))
    assert set(made) == marked - OTHERS | {("pipeline.md", "wrong paths")}


def test_a_part_reads_tables_of_earlier_stages() -> None:
    for part in PARTS:
        for page in part.reads:
            assert any(other.page == page and other.stage < part.stage for other in PARTS)


def test_the_kernels_of_the_analyses_are_built() -> None:
    assert {kernel for kernel, _, _ in ANALYSES} <= set(BUILDS)
    assert len(ANALYSES) == len(set(ANALYSES))


def page(folder: Path) -> Path:
    found = folder / "page.md"
    marks = (f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in ("a", "b", "c"))
    found.write_text("".join(marks), encoding="utf-8")
    return found


def part(name: str, stage: int, at: Path, *arguments: str) -> Part:
    given = ("--page", str(at), "--table", name, *arguments)
    reads = (str(at),) if "--other" in arguments else ()
    return Part(name, stage, MODULE, str(at), (name,), given, reads)


@pytest.mark.slow("starts workers of Dask")
def test_parts_side_by_side_write_the_page_of_one_after_the_other(tmp_path: Path) -> None:
    """The first part of the first stage ends last; the second stage reads the page."""
    pages = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        at = page(folder)
        parts = [part("a", 1, at, "--wait", "1"), part("b", 1, at)]
        parts.append(part("c", 2, at, "--other", str(at)))
        assert evaluate(parts, [], "version", ResultFolder(folder / "results"), workers=workers)
        pages.append(at.read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert "| c | 54 |" in pages[0]  # the words of the page with both tables of the first stage


@pytest.mark.slow("starts workers of Dask")
def test_a_failure_is_reported_and_changes_no_page(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    at, folder = page(tmp_path), ResultFolder(tmp_path / "results")
    other = Part("c", 1, MODULE, str(at), ("c", "d"), part("c", 1, at).arguments)
    parts = [part("a", 1, at, "--fail"), part("b", 1, at), other]
    assert not evaluate(parts, [], "version", folder, workers=2)
    output = capfd.readouterr().out
    assert "a (a): PartFailed: status 3\nthe reason of the failure" in output
    assert "c (c, d): PartFailed: it has the tables" in output
    text = at.read_text(encoding="utf-8")
    assert "| b | 1 |" in text
    assert "| a |" not in text
    assert "| c |" not in text
    at.write_text(text.replace("| b | 1 |", "| b | 2 |"), encoding="utf-8")
    assert evaluate([part("b", 1, at)], [], "version", folder, workers=2)
    assert "processor" not in capfd.readouterr().out  # stored, and written again
    assert "| b | 1 |" in at.read_text(encoding="utf-8")
