"""The kernel's figures beside published ones: ``make campaign-papers ARGS=--write``.

``papers.toml`` has the published figures, each with its source. Ours are bounds under
``kzm-paper``, whose assumptions are those of the papers, and cycles of ``bench.ipc`` out of
``kernels/bilby/docs/ipc.md``. With ``--write`` the tables in ``docs/results/papers.md`` are
replaced.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import KERNEL, Bounds, bounds, sizes
from campaigns.mcs_results import documented_deviations, documented_operations
from tests.testing.harness import build

__all__ = [
    "Latency",
    "Operations",
    "Published",
    "entries",
    "latencies",
    "main",
    "operations",
    "published",
]

PUBLISHED = Path(__file__).with_name("papers.toml")
PLATFORM, MEGAHERTZ = "kzm-paper", 532
PRESETS = ("before", "after", "latency", "mcs")
BOARDS = ("kzm", "cubieboard")
CORES = {"kzm": "ARM1136", "cubieboard": "Cortex-A8"}
OPERATIONS = {  # of bench.ipc
    "call": "call, 4 words",
    "reply": "answer, 4 words",
    "interrupt": "interrupt to an urgent thread",
    "signal": "signal to an urgent thread",
}
PINNED = {"l1": "lines locked in L1", "l2": "locked in L2, lines in L1"}  # builds of `latency`
LOCKED = f"platform{PLATFORM[3:]}.toml"  # beside these
AGAIN, PATH = 1, 2  # columns of documented_operations()


@dataclass(frozen=True, slots=True)
class Entry:
    """Computed and observed worst cases in µs, and our entries that it corresponds to."""

    name: str
    ours: tuple[str, ...]
    microseconds: tuple[float, ...]
    observed: tuple[float, float]  # L2 off, and on


@dataclass(frozen=True, slots=True)
class Latency:
    """Cycles as they are printed; absent parts are empty."""

    system: str
    chip: str
    kind: str
    source: str
    total: str
    region: str = ""
    delivery: str = ""


@dataclass(frozen=True, slots=True)
class Operations:
    """Cycles of frequent operations as they are printed; absent ones are empty."""

    system: str
    chip: str
    kind: str
    source: str = ""
    call: str = ""
    reply: str = ""
    interrupt: str = ""
    signal: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """The content of ``papers.toml``."""

    source: str
    entries: tuple[Entry, ...]
    latencies: tuple[Latency, ...]
    operations: tuple[Operations, ...]


def published(path: Path = PUBLISHED) -> Published:
    """Read the figures. Raises TypeError for a key that is unknown or absent."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = [
        Entry(
            row["name"],
            tuple(row["ours"]),
            tuple(row["microseconds"]),
            (row["observed"][0], row["observed"][1]),
        )
        for row in table["entries"]["rows"]
    ]
    return Published(
        table["entries"]["source"],
        tuple(rows),
        tuple(Latency(**row) for row in table["latency"]),
        tuple(Operations(**row) for row in table["operations"]),
    )


def microseconds(cycles: int) -> str:
    return f"{cycles / MEGAHERTZ:,.1f}"


def entries(figures: Published, ours: Sequence[Bounds]) -> str:
    """Worst cases in µs; ``ours``: before, after, and after with the level-2 cache on."""
    columns = ("before, L2 off", "after, L2 off", "after, L2 on")
    head = ["entry", *(f"{column}: {whose}" for column in columns for whose in ("seL4", "bilby"))]
    rows = []
    for entry in figures.entries:
        row = [entry.name]
        for theirs, found in zip(entry.microseconds, ours, strict=True):
            own = max(found.entries[name] for name in entry.ours)
            row += [f"{theirs:,.1f}", microseconds(own)]
        rows.append(row)
    return markdown(head, rows)


def latencies(figures: Published, ours: Iterable[tuple[str, Bounds]]) -> str:
    """Longest region with interrupts disabled, delivery, and their sum, in cycles."""
    head = ("system", "core", "kind", "interrupts disabled", "delivery", "sum", "µs", "source")
    rows = [
        (row.system, row.chip, row.kind, row.region, row.delivery, row.total, "", row.source)
        for row in figures.latencies
    ]
    for name, found in ours:
        region, delivery = max(found.entries.values()), found.entries["interrupt"]
        cycles = (f"{region:,}", f"{delivery:,}", f"{found.latency:,}")
        chip, source = f"ARM1136, {MEGAHERTZ} MHz", f"`{PLATFORM}`"
        rows.append((name, chip, "bound", *cycles, microseconds(found.latency), source))
    return markdown(head, rows)


def own_operations(tables: dict[str, dict[str, list[int]]]) -> list[Operations]:
    """Ours: warm caches by the concrete machine, and the bound of the same path."""
    rows, deviations = [], documented_deviations()
    for board in BOARDS:
        for preset in PRESETS:
            title = f"`{preset}` on {board}"
            found, spread = tables[title], deviations[title]
            for kind, column in (("model, warm caches", AGAIN), ("bound of the path", PATH)):
                cells = {key: f"{found[name][column]:,}" for key, name in OPERATIONS.items()}
                if column == AGAIN:
                    cells = {key: f"{cell} ({spread[OPERATIONS[key]]})"
                             for key, cell in cells.items()}  # fmt: skip
                rows.append(Operations(f"bilby, `{preset}`", CORES[board], kind, board, **cells))
    return rows


def operations(figures: Published, tables: dict[str, dict[str, list[int]]]) -> str:
    """Cycles of a call, its reply, an interrupt to its handler, and a signal."""
    head = ("system", "core", "kind", *OPERATIONS, "source")
    rows = [
        (row.system, row.chip, row.kind, row.call, row.reply, row.interrupt, row.signal, row.source)
        for row in (*figures.operations, *own_operations(tables))
    ]
    return markdown(head, rows)


def locked(pin: str) -> Bounds:
    """Of the preset `latency` with locked lines, under the same figures."""
    name = f"latency-{pin}"
    board = build.ROOT / "build" / "bilby" / f"kzm-{name}" / LOCKED
    return bounds(str(board), name, {}, l2="on" if pin == "l2" else "off")


def text() -> str:
    """All tables."""
    figures = published()
    fixed = bounds(PLATFORM, "before", sizes())
    after, latency, mcs = (bounds(PLATFORM, preset, {}) for preset in PRESETS[1:])
    cached = bounds(PLATFORM, "after", {}, l2="on")
    systems = (
        ("bilby, `before`, at the fixed sizes", fixed),
        ("bilby, `after`", after),
        ("bilby, `after`, L2 on", cached),
        ("bilby, `latency`", latency),
        *((f"bilby, `latency`, {where}", locked(pin)) for pin, where in PINNED.items()),
        ("bilby, `mcs`", mcs),
    )
    return "\n".join(
        (
            "## Worst cases of entries",
            "",
            f"µs at {MEGAHERTZ} MHz; every column is a bound. seL4: {figures.source}. bilby: "
            f"`{PLATFORM}`, `before` at the [fixed sizes](../ilp.md#fixed-sizes-of-the-kernel).",
            "",
            entries(figures, (fixed, after, cached)),
            "## Interrupt latency",
            "",
            "Cycles: the longest region with interrupts disabled, and the delivery to a user.",
            "",
            latencies(figures, systems),
            "## Frequent operations",
            "",
            "Cycles of the kernel alone.",
            "",
            operations(figures, documented_operations()),
        )
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the tables, or writes them."""
    parser = argparse.ArgumentParser(prog="campaigns.papers")
    add_write(parser, "docs/results/papers.md")
    options = parser.parse_args(arguments)
    for preset in PRESETS:
        build.kernel(f"kzm-{preset}", *KERNEL)
    for pin in PINNED:
        build.kernel(f"kzm-latency-{pin}", *KERNEL, LOCKED)
    tables = text()
    write(options, "results/papers.md", {"papers": tables})
    print(tables, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
