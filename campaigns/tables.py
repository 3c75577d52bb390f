"""The tables of the evaluation as CSV files: ``python -m campaigns.tables``.

Every table between marks in ``PAGES`` becomes a file in ``docs/results/csv``. ``CHARTS`` are the
columns that ``campaigns.charts`` draws.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testing.harness import build

__all__ = ["CHARTS", "FOLDER", "PAGES", "Chart", "Table", "all_tables", "main", "number", "tables"]

PAGES = (
    "docs/results/observed.md",
    "docs/results/bounds.md",
    "docs/results/papers.md",
    "docs/results/mcs.md",
    "docs/pinning.md",
    "kernels/bilby/docs/ipc.md",
)
SECTION = re.compile(r"<!-- (?P<name>.+?): begin -->\n(?P<text>.*?)<!-- (?P=name): end -->", re.S)
FOLDER = build.ROOT / "docs/results/csv"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a marked section: its file's name, its head and its rows, as they are printed."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def csv(self) -> str:
        """The table as CSV; numbers without separators."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.head)
        for row in self.rows:
            writer.writerow(re.sub(r"(?<=\d),(?=\d{3})", "", cell) for cell in row)
        return file.getvalue()


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars of some columns of a table, one for each row; ``labels``: the columns that name it.

    ``rows``: an expression that the labels of the drawn rows contain; "" draws all.
    """

    table: str
    labels: tuple[int, ...]
    columns: tuple[tuple[int, str], ...]  # each with its name in the legend
    unit: str
    rows: str = ""
    logarithmic: bool = False

    def drawn(self, table: Table) -> list[tuple[str, tuple[str, ...]]]:
        """The drawn rows, each with its label; an empty first cell repeats the one above."""
        found, name = [], ""
        for row in table.rows:
            name = row[self.labels[0]] or name
            label = ", ".join([name, *(row[at] for at in self.labels[1:])]).replace("`", "")
            if re.search(self.rows, label):
                found.append((label, row))
        return found


CHARTS = (
    Chart(
        "observed-computed-and-observed-1",
        (0, 1),
        ((5, "L2 off"), (8, "L2 on")),
        "computed / observed",
    ),
    Chart(
        "observed-pessimism-1",
        (0,),
        ((3, "L2 off"), (6, "L2 on")),
        "charge of the observed path above its observation, %",
    ),
    Chart(
        "observed-effect-of-l2-1",
        (0,),
        ((3, "on / off"),),
        "observed with the level-2 cache on / off",
    ),
    Chart(
        "pinning-pinned-1",
        (0,),
        ((3, "first touched"), (5, "wcet pin"), (7, "seL4, published")),
        "gain of pinned lines, %",
    ),
    Chart(
        "observed-predicted-branches-1",
        (0,),
        ((4, "bound"), (7, "most observed"), (8, "mean observed")),
        "with the branch predictor / without",
    ),
    Chart(
        "observed-predicted-returns-1",
        (0,),
        ((4, "bound"), (7, "most observed"), (8, "mean observed")),
        "with branch predictor and return stack / without",
        logarithmic=True,
    ),
    Chart(
        "papers-papers-1",
        (0,),
        ((1, "before: seL4"), (2, "before: bilby"), (3, "after: seL4"), (4, "after: bilby")),
        "bound with the level-2 cache off, µs",
        logarithmic=True,
    ),
    Chart(
        "papers-papers-2",
        (0, 2),
        ((3, "interrupts disabled"), (4, "delivery"), (5, "sum")),
        "interrupt latency, cycles",
        logarithmic=True,
    ),
    Chart(
        "papers-papers-3",
        (0, 1, 2),
        ((3, "call"), (4, "reply"), (5, "interrupt"), (6, "signal")),
        "cycles of the kernel, mean",
        rows="measured|model",
    ),
    Chart(
        "papers-factors-1",
        (0,),
        ((3, "seL4"), (6, "bilby")),
        "bound of before / bound of after",
        logarithmic=True,
    ),
    Chart(
        "bounds-preempt-or-not-1",
        (0,),
        ((4, "masked region of the system call"), (5, "delivery"), (6, "latency")),
        "cycles",
        logarithmic=True,
    ),
    Chart("mcs-latencies-1", (0, 1), ((4, "mcs / after"),), "bound of mcs / bound of after"),
    Chart(
        "mcs-messages-1",
        (0, 1),
        ((2, "empty caches, mean"), (3, "warm caches, mean"), (4, "bound of the path")),
        "cycles of mcs",
        logarithmic=True,
    ),
    Chart(
        "mcs-operations-1",
        (0,),
        ((2, "empty caches, mean"), (3, "warm caches, mean"), (4, "bound of the path")),
        "cycles, kzm",
        logarithmic=True,
    ),
    Chart("mcs-programs-1", (0,), ((1, "kzm"),), "longest response, hundredths of a unit"),
    Chart(
        "mcs-programs-3",
        (0,),
        ((1, "kzm"), (2, "cubieboard")),
        "ticks of a decision of the user's scheduler, by number of threads",
        rows="^decision.*mean",
    ),
    Chart(
        "mcs-programs-4",
        (0,),
        ((1, "kzm"), (2, "cubieboard")),
        "ticks of a rollback of the server",
        rows="rollback",
    ),
    Chart(
        "mcs-programs-5",
        (0,),
        ((1, "kzm"), (2, "cubieboard")),
        "requests that the server answers, by percent of the processor for the hog",
        rows=r"^isolation \d",
    ),
    Chart(
        "mcs-programs-6",
        (0,),
        ((1, "kzm"), (2, "cubieboard")),
        "hundredths of a tick for a turn, by number of threads",
        rows="hundredths",
    ),
)


def tables(page: Path) -> Iterator[Table]:
    """The tables in the marked sections of a page."""
    for section in SECTION.finditer(page.read_text(encoding="utf-8")):
        slug = re.sub(r"\W+", "-", section["name"].lower())
        groups = re.findall(r"(?:^\|.*\n)+", section["text"], re.M)
        for place, lines in enumerate(groups, 1):
            head, _, *rows = (
                tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
                for line in lines.splitlines()
            )
            yield Table(f"{page.stem}-{slug}-{place}", head, tuple(rows))


def number(cell: str) -> float | None:
    """The number that a cell begins with; None if there is none."""
    found = re.match(r"[~> ]*(-?\d[\d,]*(?:\.\d+)?)", cell)
    return None if found is None else float(found[1].replace(",", ""))


def all_tables() -> dict[str, Table]:
    """The tables of all pages, by name."""
    return {table.name: table for page in PAGES for table in tables(build.ROOT / page)}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    found = all_tables()
    for table in found.values():
        (FOLDER / f"{table.name}.csv").write_text(table.csv, encoding="utf-8")
    print(f"{len(found)} tables", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
