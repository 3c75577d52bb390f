"""More tables of the kernel: ``make campaign-kernel_tables``, ``ARGS=--write``.

Bounds with translations charged, and known data addresses under the shipped facts. With
``--write`` they replace the tables of ``docs/results/bounds.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from campaigns.documented import markdown
from campaigns.documented import replace as replace_table
from loopbounds.proof.options import BoundOptions
from quoll.results.results_store import ResultsStore
from tests.testing.harness import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.commands.cache import report
from wcet.reports.references import on_worst_path

KERNEL = build.ROOT / "build/bilby/kzm-after/kernel.elf"
POOLS = build.ROOT / "kernels/bilby/pools.facts"
TRANSLATIONS = ("entry", "translations assumed", "charged", "of that TLB")
ADDRESSES = (
    *("entry", "exact line", "within 4 KiB", "named region", "symbolic hit", "unknown", "cycles"),
    "cycles without the facts",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/")
    write = parser.parse_args().write
    build.kernel()
    for name, head, rows in (
        ("translations", TRANSLATIONS, translations()),
        ("addresses", ADDRESSES, addresses()),
    ):
        text = markdown(head, rows)
        print(text, flush=True)
        if write:
            replace_table("results/bounds.md", name, text)
    return 0


def options(**changed: Any) -> AnalysisOptions:
    plain = AnalysisOptions(
        entries=("all",), platform="kzm", l2=None, facts=(), neighbouring_facts=True, exits=(),
        solver="highs", time_limit=60.0, bounds=BoundOptions(store=ResultsStore.of_user()),
        store=ResultsStore.of_user(),
    )  # fmt: skip
    return replace(plain, **changed)


def translations() -> Iterator[tuple[str, ...]]:
    """Rows: entry, bound with translations assumed, with translations charged, difference."""
    assumed, charged = (
        analyse(KERNEL, options(tlb=tlb), StageLog(verbose=False)).entries
        for tlb in (None, "last-page")
    )
    for name, entry in assumed.items():
        more = charged[name].cycles
        yield name, f"{entry.cycles:,}", f"{more:,}", f"{more - entry.cycles:,}"


def addresses() -> Iterator[tuple[str, ...]]:
    """Rows: entry, shares of data references (``SHARES``), bound, bound without known addresses."""
    wanted = options(facts=(POOLS,))
    run = AnalysisRun.begin(KERNEL, wanted, StageLog(verbose=False))
    plain = analyse(KERNEL, options(), StageLog(verbose=False)).entries
    for name, result in analyse(KERNEL, wanted, StageLog(verbose=False)).entries.items():
        shares = report(run, on_worst_path(run, name, result), 0)["data_shares"]
        bounds = (f"{result.cycles:,}", f"{plain[name].cycles:,}")
        yield name, *(f"{100 * share:.1f} %" for share in shares.values()), *bounds


if __name__ == "__main__":
    sys.exit(main())
