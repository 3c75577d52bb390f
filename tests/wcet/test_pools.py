"""The pointer facts that are shipped with the kernel: no recorded execution refutes them."""

from __future__ import annotations

from pathlib import Path

from quoll.facts import load
from quoll.image import Image
from quoll.regions import Regions
from quoll.trace import Trace
from tests.harness import build

POOLS = build.ROOT / "kernels/bilby/pools.facts"


def test_no_execution_refutes_the_pools(kernel: Path, trace: Trace) -> None:
    image = Image.load(kernel)
    regions = Regions.of(load([POOLS]), image)
    assert sum(map(len, regions.pointers.values())) == 8
    seen = set()
    different = {(e.pcs.tobytes(), e.access_words.tobytes()): e for e in trace.executions}
    for execution in different.values():
        assert not list(regions.violations(image, execution))
        seen |= {execution.pcs[a.index] for a in execution.accesses()} & set(regions.pointers)
    assert len(seen) == 8, "every fact is about an access that the tests make"
