"""``make paper``: its parts make all tables, each when it can, and failures are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.kernel_bounds import INLINED
from campaigns.paper import ANALYSES, BUILDS, PARTS, STEPS, KernelAnalysis, Part, evaluate
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


def test_each_step_comes_after_those_that_it_needs() -> None:
    """Otherwise it would have a higher priority than these, or never start."""
    assert len({step.title for step in STEPS}) == len(STEPS)
    for number, step in enumerate(STEPS):
        if isinstance(step, Part):
            before = STEPS[:number]
            assert {*step.finds} <= {one.title for one in before if isinstance(one, KernelAnalysis)}
            made = {(one.page, t) for one in before if isinstance(one, Part) for t in one.tables}
            assert {*step.reads} <= made


def test_each_analysis_is_of_a_kernel_that_is_built_and_has_a_reader() -> None:
    assert {one.kernel for one in ANALYSES} == set(BUILDS)
    assert {one.title for one in ANALYSES} == {title for part in PARTS for title in part.finds}
    for one in ANALYSES:
        words = tuple("=".join(one.arguments[:2]).split()) if "mcs" in one.kernel else ()
        assert words == INLINED.get(one.kernel.split("-")[1], ())


def page(folder: Path) -> Path:
    found = folder / "page.md"
    marks = (f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in ("a", "b", "c"))
    found.write_text("".join(marks), encoding="utf-8")
    return found


def part(name: str, at: Path, *arguments: str, reads: tuple[str, ...] = ()) -> Part:
    given = ("--page", str(at), "--table", name, *arguments)
    tables = tuple((str(at), table) for table in reads)
    return Part(name, MODULE, str(at), (name,), given, reads=tables)


@pytest.mark.slow("starts workers of Dask")
def test_parts_side_by_side_write_the_page_of_one_after_the_other(tmp_path: Path) -> None:
    """The first part ends last; the last one reads the page."""
    pages = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        at = page(folder)
        parts = [part("a", at, "--wait", "1"), part("b", at)]
        parts.append(part("c", at, "--other", str(at), reads=("a", "b")))
        assert evaluate(parts, "version", ResultFolder(folder / "results"), workers=workers)
        pages.append(at.read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert "| c | 54 |" in pages[0]  # the words of the page with both other tables


@pytest.mark.slow("starts workers of Dask")
def test_a_failure_is_reported_and_changes_no_page(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    at, folder = page(tmp_path), ResultFolder(tmp_path / "results")
    other = Part("c", MODULE, str(at), ("c", "d"), part("c", at).arguments)
    parts = [part("a", at, "--fail"), part("b", at), other, part("e", at, reads=("a",))]
    assert not evaluate(parts, "version", folder, workers=2)
    output = capfd.readouterr().out
    assert "a (a): PartFailed: status 3\nthe reason of the failure" in output
    assert "c (c, d): PartFailed: it has the tables" in output
    assert "e (e): not run" in output
    text = at.read_text(encoding="utf-8")
    assert "| b | 1 |" in text
    assert "| a |" not in text
    assert "| c |" not in text
    at.write_text(text.replace("| b | 1 |", "| b | 2 |"), encoding="utf-8")
    assert evaluate([part("b", at)], "version", folder, workers=2)
    assert "processor" not in capfd.readouterr().out  # stored, and written again
    assert "| b | 1 |" in at.read_text(encoding="utf-8")
