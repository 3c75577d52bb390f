# SPDX-License-Identifier: BSD-2-Clause
"""The page of published figures has each of them, and ours as the other pages have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaigns.documented import inside
from campaigns.kernel_bounds import Bounds
from campaigns.mcs_results import BOARDS, SHORT, documented_operations
from campaigns.papers import (
    PRESETS,
    Latency,
    Operations,
    entries,
    latencies,
    operations,
    published,
)
from campaigns.tables import CHARTS, FOLDER, Chart, Table, all_tables, number
from tests.testing.harness import build

RESULTS = build.ROOT / "docs/results"
PAGE = inside((RESULTS / "papers.md").read_text(encoding="utf-8"), "papers")
SOME = Bounds(
    {
        "syscall": 532_000,
        "undefined": 5_320,
        "prefetch-abort": 53_200,
        "data-abort": 26_600,
        "interrupt": 10_640,
    },
    {},
    542_640,
    "its entry",
)


def test_each_published_figure_is_on_the_page() -> None:
    figures = published()
    theirs = [f"{value:,.1f}" for entry in figures.entries for value in entry.microseconds]
    assert {"3,851.0", "332.4", "436.3", "44.4", "44.9", "23.2"} <= set(theirs)
    theirs += [row.total for row in figures.latencies]
    theirs += [cell for row in figures.operations for cell in (row.call, row.signal) if cell]
    for figure in ("189,117", "about 22,000", "about 32,000", *theirs):
        assert figure in PAGE, figure


def test_each_figure_says_how_it_was_found_and_where() -> None:
    figures = published()
    assert figures.source
    rows: list[Latency | Operations] = [*figures.latencies, *figures.operations]
    for row in rows:
        assert row.kind, row
        assert row.chip, row
        assert row.source, row


def test_our_bounds_are_those_of_the_page_of_bounds() -> None:
    text = inside((RESULTS / "bounds.md").read_text(encoding="utf-8"), "bounds")
    paper, _ = text.split("### kzm\n")
    (row,) = re.findall(r"^\| interrupt latency \| (.*) \|$", paper, re.M)
    _, before, after, _, latency = row.split("|")
    for cycles in (before, after, latency):
        assert f"| {cycles.strip()} |" in PAGE, cycles


def test_a_page_fault_is_the_longer_abort() -> None:
    rows = entries(published(), (SOME, SOME, SOME)).splitlines()[2:]
    cells = {row.split("|")[1].strip(): row.split("|")[3].strip() for row in rows}
    expected = {"system call": "1,000.0", "undefined instruction": "10.0", "page fault": "100.0"}
    assert cells == {**expected, "interrupt": "20.0"}


def test_a_latency_is_a_region_and_a_delivery() -> None:
    last = latencies(published(), [("ours", SOME)]).splitlines()[-1]
    assert "| bound | 532,000 | 10,640 | 542,640 | 1,020.0 |" in last


def test_each_preset_and_board_has_its_operations() -> None:
    found = operations(published(), documented_operations())
    for preset in PRESETS:
        assert found.count(f"bilby, `{preset}`") == 4, preset


def test_the_short_way_of_mcs_is_at_most_7_per_cent_longer() -> None:
    """By the charge of the analysis for the recorded path of a call, and of its answer."""
    tables = documented_operations()
    for board in BOARDS:
        for name in SHORT:
            before, mcs = (tables[f"`{preset}` on {board}"][name] for preset in ("before", "mcs"))
            assert mcs[-1] <= 1.07 * before[-1], (board, name)


def test_an_unknown_key_is_an_error(tmp_path: Path) -> None:
    source = build.ROOT / "campaigns/papers.toml"
    text = source.read_text(encoding="utf-8").replace('call = "316 (2)"', 'cal = "316 (2)"')
    (tmp_path / "papers.toml").write_text(text, encoding="utf-8")
    with pytest.raises(TypeError, match="cal"):
        published(tmp_path / "papers.toml")


@pytest.mark.parametrize("table", all_tables().values(), ids=lambda table: table.name)
def test_tables_are_stored_as_csv(table: Table) -> None:
    """Else: ``python -m campaigns.tables``."""
    assert {len(row) for row in table.rows} == {len(table.head)}
    assert (FOLDER / f"{table.name}.csv").read_text(encoding="utf-8") == table.csv


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.table)
def test_charts_are_of_columns_with_numbers(chart: Chart) -> None:
    table = all_tables()[chart.table]
    for column, _ in chart.columns:
        assert [row for _, row in chart.drawn(table) if number(row[column]) is not None]
    assert (FOLDER.parent / "charts" / f"{chart.table}.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1,234.5", 1234.5),
        ("33%", 33),
        ("~ 22,000", 22000),
        ("> 4,441", 4441),
        ("", None),
        ("a 1", None),
    ],
)
def test_the_number_of_a_cell(cell: str, value: float | None) -> None:
    assert number(cell) == value
