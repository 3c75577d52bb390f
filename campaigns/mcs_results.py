"""The cost of time as a capability: ``make campaign-mcs_results``.

The programs of the preset ``mcs`` run on both boards in QEMU; each must pass. Operations are
recorded, and then executed by the concrete machine of the platform from 100 initial states, as in
``bench.ipc``. Ticks that the programs print are QEMU's virtual time, in which an instruction takes
a nanosecond. ``messages`` and ``short way`` compare tables that ``bench.ipc`` has written. With
``ARGS=--write`` the tables in ``docs/results/mcs.md`` are replaced, or one with ``--table``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.ipc import HEAD, Round, charged, rounds, row, timed
from campaigns.documented import add_write, inside, markdown, write
from campaigns.kernel_bounds import INLINED, KERNEL, bounds
from quoll.errors import InputError
from quoll.recordings.trace import Trace
from tests.testing.harness import build, qemu
from wcet.analysis.analysis import analyse
from wcet.analysis.stage_times import StageLog
from wcet.request import add_analysis, requested

__all__ = [
    "BOARDS",
    "SHORT",
    "THREADS",
    "documented_deviations",
    "documented_operations",
    "figures",
    "main",
]

BOARDS = ("kzm", "cubieboard")
PUBLISHED = Path(__file__).with_name("papers.toml")
AGAIN = 1  # column of documented_operations(): the mean with warm caches
MEGAHERTZ = {"kzm": 532, "cubieboard": 1008}  # of the cores, as in the platform files
CLOCKS = {"kzm": 39, "cubieboard": 24}  # ticks of the programs in a microsecond
THREADS = (0, 4, 12, 28, 124)  # critical ones, of modes.c
OPERATIONS = (
    *((f"change the level, {n} critical threads", "") for n in THREADS),
    ("bind a context", "unbind it"),
    ("set a budget", "read the clock"),
    ("yield to a thread", "ask for the time used"),
)
MESSAGES = ("call, 4 words", "answer, 4 words", "call, 120 words", "answer, 120 words")
SHORT = ("call, 4 words", "answer, 4 words")  # on the fastpath
PLATFORMS = ("kzm-paper", "kzm")
PROGRAMS = ("sample", "sched_user", "edf", "aes", "isolation", "cfs")  # that print figures
ALL = ("syscall", "undefined", "prefetch-abort", "data-abort", "interrupt")


def operations() -> str:
    """The operations of modes.c on both boards, with the bound beside each."""
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(operations_of(board, Path(folder) / board) for board in BOARDS)


def operations_of(board: str, trace: Path) -> str:
    """One board; ``trace``: a file for the recording."""
    name = f"{board}-mcs"
    kernel = build.kernel(name, *KERNEL)
    done = qemu.run_bilby(name, "modes", trace)
    if done.returncode != 0:
        raise InputError(f"modes ended with {done.returncode}", hint=done.stdout)
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    options = requested(parser.parse_args(INLINED["mcs"]), [])
    result = analyse(kernel, options, StageLog(verbose=False))
    found: list[Round] = rounds(Trace.read(trace))
    if [len(made.executions) for made in found] != [len(names) for names in OPERATIONS]:
        raise InputError(f"{len(found)} rounds were found", hint="is modes.c another program?")
    rows: list[Sequence[str]] = []
    for made, names in zip(found, OPERATIONS, strict=True):
        cycles = timed(made, result.image, result.platform)
        for execution, name, one in zip(made.executions, names, cycles, strict=True):
            if name:
                rows.append(row(name, execution, one, *charged(execution, result)))
    return f"### {board}\n\n{markdown(HEAD, rows)}"


def latencies() -> str:
    """The latencies of ``after`` and ``mcs``; no bound of ``mcs`` may be a function."""
    rows = []
    for platform in PLATFORMS:
        after, mcs = (bounds(platform, preset, {}) for preset in ("after", "mcs"))
        if mcs.functions:
            raise InputError(f"bounds depend on {sorted(mcs.functions)}")
        for entry in ALL:
            old, new = after.entries[entry], mcs.entries[entry]
            rows.append((platform, entry, f"{old:,}", f"{new:,}", f"{new / old:.2f}"))
        old, new = after.latency, mcs.latency
        rows.append((platform, "interrupt latency", f"{old:,}", f"{new:,}", f"{new / old:.2f}"))
    return markdown(("platform", "entry", "`after`", "`mcs`", "ratio"), rows)


def documented_operations() -> dict[str, dict[str, list[int]]]:
    """The figures of ``bench.ipc`` in the document, by preset and board, and by operation.

    Each has the mean of a first execution, the mean with warm caches, and the bound of the path.
    """
    return {
        name: {key: [int(cell.split()[0].replace(",", "")) for cell in row]
               for key, row in table.items()}
        for name, table in _documented().items()
    }  # fmt: skip


def documented_deviations() -> dict[str, dict[str, str]]:
    """The standard deviation with warm caches, as printed, as ``documented_operations``."""
    return {
        name: {key: again.split()[1].strip("()") for key, (_, again, _) in table.items()}
        for name, table in _documented().items()
    }


def messages() -> str:
    """Calls and answers of ``mcs`` beside calls and answers of ``after``, from ``bench.ipc``."""
    tables = documented_operations()
    rows = []
    for board in BOARDS:
        after, mcs = (tables[f"`{preset}` on {board}"] for preset in ("after", "mcs"))
        for name in MESSAGES:
            pairs = zip(after[name], mcs[name], strict=True)
            ratios = [f"{new:,} ({new / old:.2f})" for old, new in pairs]
            rows.append((board, name, *ratios))
    return markdown(("board", "operation", "first: mean", "again: mean", "bound of the path"), rows)


def short_way() -> str:
    """Bounds of short calls and answers in ``mcs`` and in ``before``, from ``bench.ipc``."""
    tables = documented_operations()
    rows = []
    for board in BOARDS:
        before, mcs = (tables[f"`{preset}` on {board}"] for preset in ("before", "mcs"))
        for name in SHORT:
            pairs = zip(before[name], mcs[name], strict=True)
            cells = [
                cell for old, new in pairs for cell in (f"{old:,}", f"{new:,} ({new / old:.2f})")
            ]
            rows.append((board, name, *cells))
    columns = ("first: mean", "again: mean", "bound of the path")
    heads = [f"{column}, `{preset}`" for column in columns for preset in ("before", "mcs")]
    return markdown(("board", "operation", *heads), rows)


def _documented() -> dict[str, dict[str, tuple[str, str, str]]]:
    """Both means and the bound of the path as printed, by preset and board, and by operation."""
    document = build.ROOT / "kernels" / "bilby" / "docs" / "ipc.md"
    text = inside(document.read_text(encoding="utf-8"), "operations")
    tables = re.findall(r"^### (.*)\n\n((?:\|.*\n?)+)", text, re.M)
    return {name: _by_operation(table) for name, table in tables}


def _by_operation(table: str) -> dict[str, tuple[str, str, str]]:
    """Both means, with deviations, and the bound of the path, of each row."""
    found = {}
    for line in table.splitlines()[2:]:
        name, _, first, again, bound, _ = (cell.strip() for cell in line.strip("| ").split("|"))
        found[name] = first, again, bound
    return found


def figures(text: str) -> list[tuple[str, str]]:
    """The figures that a program prints: name and value of each ``# name value`` line.

    A repeated name gets a number, so that no figure is lost.
    """
    found: list[tuple[str, str]] = []
    times: Counter[str] = Counter()
    for match in re.finditer(r"^# (\S.*) (-?\d+)\r?$", text, re.M):
        times[match[1]] += 1
        number = "" if times[match[1]] == 1 else f" ({times[match[1]]})"
        found.append((match[1] + number, match[2]))
    return found


def printed(programs: Iterable[str]) -> str:
    """The figures of each program, board beside board; raises InputError if one fails."""
    parts = []
    for program in programs:
        columns: list[dict[str, str]] = []
        for board in BOARDS:
            done = qemu.run_bilby(f"{board}-mcs", program)
            if done.returncode != 0 or "not ok" in done.stdout:
                raise InputError(f"{program} on {board} failed", hint=done.stdout[-2000:])
            columns.append(dict(figures(done.stdout)))
        names = list(dict.fromkeys(name for column in columns for name in column))
        rows = [(name, *(column.get(name, "") for column in columns)) for name in names]
        parts.append(f"### {program}\n\n{markdown(('figure', *BOARDS), rows)}")
    return "\n".join(parts)


def beside_published() -> str:
    """The figures of the paper, and ours out of the documented tables of operations and programs.

    Raises ValueError if a table has not a figure, or no number.
    """
    paper = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["mixed"]
    after, mcs = ({board: documented_operations()[f"`{preset}` on {board}"] for board in BOARDS}
                  for preset in ("after", "mcs"))  # fmt: skip
    page = (build.ROOT / "docs/results/mcs.md").read_text(encoding="utf-8")
    switches = re.findall(r"^### (.*)\n\n((?:\|.*\n?)+)", inside(page, "operations"), re.M)
    levels = {board: _by_operation(table) for board, table in switches}
    cells = re.findall(r"^\| (\S.*?) \| (\d+) \| (\d+) \|$", inside(page, "programs"), re.M)
    programs = {name: dict(zip(BOARDS, map(int, both), strict=True)) for name, *both in cells}
    rows: list[Sequence[str]] = []
    for one in paper["messages"]:
        (old, new), name = one["cycles"], one["ours"]
        pairs = ((after[board][name][AGAIN], mcs[board][name][AGAIN]) for board in BOARDS)
        ours = (f"{a:,} → {b:,} ({b / a - 1:+.0%})" for a, b in pairs)
        rows.append(("8", one["name"], "cycles", f"{old} → {new} ({new / old - 1:+.0%})", *ours))
    for one in paper["levels"]:
        name = f"change the level, {one['threads']} critical threads"
        cycles = (int(levels[b][name][AGAIN].split()[0].replace(",", "")) for b in BOARDS)
        ours = (f"{c / MEGAHERTZ[b]:.1f}" for b, c in zip(BOARDS, cycles, strict=True))
        published = f"{one['microseconds']}"
        rows.append(("table 3", f"level, {one['threads']} threads", "µs", published, *ours))
    for number, name, program, published in (
        ("10", "least decision of EDF, 10 threads", "decision-10-least", paper["decision"]),
        ("section 5.2.4", "rollback, mean", "aes-rollback-mean", paper["rollback"]),
    ):
        ours = (f"{programs[program][b] / CLOCKS[b]:.1f}" for b in BOARDS)
        rows.append((number, name, "µs", published, *ours))
    half = (programs["isolation 50"][b] / programs["isolation 0"][b] for b in BOARDS)
    more = (f"{part:.2f}" for part in half)
    rows.append(("12", "throughput beside a hog of 50 %", "", paper["throughput"], *more))
    return markdown(("figure", "of", "unit", "published", *BOARDS), rows)


TABLES: dict[str, Callable[[], str]] = {
    "latencies": latencies,
    "messages": messages,
    "short way": short_way,
    "operations": operations,
    "programs": lambda: printed(PROGRAMS),
    "published": beside_published,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/results/mcs.md")
    parser.add_argument("--table", choices=TABLES, action="append", help="all without any")
    options = parser.parse_args()
    for board in BOARDS:
        build.make("kernels/bilby", f"BOARD={board}", "PRESET=mcs")
        build.make("kernels/bilby", f"BOARD={board}", "PRESET=after")
    for name in options.table or TABLES:
        text = TABLES[name]()
        print(text, flush=True)
        write(options, "results/mcs.md", {name: text})
    return 0


if __name__ == "__main__":
    sys.exit(main())
