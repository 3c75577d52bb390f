"""Tables of the kernel beside those of caches: ``make campaign-kernel_tables``.

Bounds with translations charged (``docs/pipeline.md``) and shared contexts (``docs/contexts.md``),
and what is known of data addresses under the facts that are shipped (``docs/caches.md``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from loopbounds.bounds import BoundOptions
from quoll.errors import UsageError
from tests.harness import build
from wcet.analyse import Options, Run, analyse
from wcet.cache_command import on_worst_path, report
from wcet.request import default_cache
from wcet.stages import Stages

KERNEL = build.ROOT / "build/bilby/kzm-after/kernel.elf"
POOLS = build.ROOT / "kernels/bilby/pools.facts"
LENGTHS = (None, 2, 1, 0)
SHARED = ("interrupt", "data-abort", "syscall")


def main() -> int:
    build.kernel()
    for rows in (translations(), contexts(), addresses()):
        for row in rows:
            print(f"| {' | '.join(row)} |", flush=True)
        print()
    return 0


def options(**changed: Any) -> Options:
    plain = Options(
        entries=("all",), platform="kzm", l2=None, facts=(), neighbouring_facts=True, ends=(),
        solver="cbc", time_limit=60.0, bounds=BoundOptions(cache=default_cache()),
        store=default_cache(),
    )  # fmt: skip
    return replace(plain, **changed)


def translations() -> Iterator[tuple[str, ...]]:
    """Entry, bound with translations assumed, and charged, and the difference."""
    assumed, charged = (
        analyse(KERNEL, options(tlb=tlb), Stages(verbose=False)).entries
        for tlb in (None, "last-page")
    )
    for name, entry in assumed.items():
        more = charged[name].cycles
        yield name, f"{entry.cycles:,}", f"{more:,}", f"{more - entry.cycles:,}"


def contexts() -> Iterator[tuple[str, ...]]:
    """Entry, K, bound, contexts, blocks."""
    for name in SHARED:
        for length in LENGTHS:
            label = "full" if length is None else str(length)
            wanted = options(entries=(name,), call_string=length)
            try:
                entry = analyse(KERNEL, wanted, Stages(verbose=False)).entries[name]
            except UsageError as error:
                yield name, label, error.message
                continue
            used = {node.context for node in entry.paths[0].graph.nodes}
            blocks = len(entry.paths[0].graph.nodes)
            yield name, label, f"{entry.cycles:,}", f"{len(used):,}", f"{blocks:,}"


def addresses() -> Iterator[tuple[str, ...]]:
    """Entry, the shares of data references in the order of ``SHARES``, and the bound."""
    wanted = options(facts=(POOLS,))
    run = Run.begin(KERNEL, wanted, Stages(verbose=False))
    for name, result in analyse(KERNEL, wanted, Stages(verbose=False)).entries.items():
        shares = report(run, on_worst_path(run, name, result), 0)["data_shares"]
        yield name, *(f"{100 * share:.1f} %" for share in shares.values()), f"{result.cycles:,}"


if __name__ == "__main__":
    sys.exit(main())
