"""The effect of the kernel's constraints: ``make campaign-constraints``, ``ARGS=--write``.

Bounds of all entries with loop bounds only, with each constraint of
``kernels/bilby/constraints.facts`` alone, and with all of them; and the number of executions of the
user-level tests that satisfy each. With ``--write`` the tables in ``docs/results/bounds.md`` are
replaced. Ends with status 1 if an execution violates a constraint.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from campaigns.documented import replace
from quoll.recordings.trace import Trace
from tests.testing.harness import build, qemu
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import whole_graph
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.executions.fact_check import FactRecord, check_facts
from wcet.request import add_analysis, requested

FACTS = build.ROOT / "kernels/bilby/constraints.facts"
KERNEL = build.ROOT / "build/bilby/kzm-after/kernel.elf"


def options(*facts: Path) -> AnalysisOptions:
    """An analysis with the defaults of the command line."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    return requested(parser.parse_args([f"--facts={path}" for path in facts]), [])


def bounds(*facts: Path) -> dict[str, int]:
    """The bound of each entry."""
    result = analyse(KERNEL, options(*facts), StageLog(verbose=False))
    return {name: entry.cycles for name, entry in result.entries.items()}


def reasons() -> dict[str, str]:
    """The comment of each constraint, by its text."""
    found = {}
    for line in FACTS.read_text().splitlines():
        text, _, reason = line.partition("#")
        if text.strip():
            found[" ".join(text.split())] = reason.strip()
    return found


def survived() -> dict[str, FactRecord]:
    """The evidence of the user-level tests for each constraint."""
    with tempfile.TemporaryDirectory() as folder:
        qemu.record(path := Path(folder) / "tests.trace")
        run = AnalysisRun.begin(KERNEL, options(FACTS), StageLog(verbose=False))
        graphs = {address: whole_graph(run, address) for address in run.entries.values()}
        records, _ = check_facts(run.image, run.facts, graphs, path.name, Trace.read(path))
    return {record.fact.source.text: record for record in records}


def tables(records: dict[str, FactRecord]) -> str:
    """Both tables in Markdown."""
    plain, together = bounds(), bounds(FACTS)
    rows = ["| entry | loop bounds only | with constraints | less |", "|---|---|---|---|"]
    for name, before in plain.items():
        after = together[name]
        rows.append(f"| {name} | {before:,} | {after:,} | {1 - after / before:.1%} |")
    rows += ["", "| constraint | reason | alone, cycles less | survived |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for text, reason in reasons().items():
            (one := Path(folder) / "one.facts").write_text(text + "\n")
            alone = bounds(one)
            worth = {n: before - alone[n] for n, before in plain.items() if alone[n] < before}
            said = ", ".join(f"{n} {cycles:,}" for n, cycles in worth.items()) or "none"
            count = records[text].reached
            rows.append(f"| `{text}` | {reason} | {said} | {count:,} executions |")
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/results/bounds.md")
    write = parser.parse_args().write
    records = survived()
    for record in records.values():
        if record.broken:
            print(f"VIOLATED {record.fact}: {record.first}")
    text = tables(records)
    print(text)
    if write:
        replace("results/bounds.md", "constraints", text)
    return int(any(record.broken for record in records.values()))


if __name__ == "__main__":
    sys.exit(main())
