"""Values of the shipped kernel against what QEMU recorded of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.recordings.follow import follow
from quoll.recordings.trace import Execution, Trace
from quoll.values.values import Values, analyse
from tests.testing.harness import build, qemu

pytestmark = pytest.mark.xdist_group("recorded values")  # one recording is made

VECTORS = ("svc", "irq", "undefined", "prefetch_abort", "data_abort")
EACH = 400  # executions per vector


@pytest.fixture(scope="module")
def recorded(recording: Path) -> Trace:
    image = Image.load(build.kernel())
    return Trace.read(recording).without(qemu.preemption_starts(image))


def compare(execution: Execution, image: Image, values: Values) -> Counter[str]:
    """Every node is reached, every edge alive, every first address among those expected."""
    graph = values.graph
    path = follow(graph, image, np.frombuffer(execution.pcs, "u4").tolist())
    lowest: dict[int, int] = defaultdict(lambda: 1 << 32)
    for access in execution.accesses():
        lowest[access.index] = min(lowest[access.index], access.addr)
    counts = Counter(executions=1)
    at = 0
    for visit in path:
        assert values.reached(visit.node)
        assert visit.edge is None or visit.edge not in values.dead_edges
        for index, insn in enumerate(graph.nodes[visit.node].block.insns):
            if at in lowest:
                possible = values.access(visit.node, index)
                assert possible is not None, image.place(insn.addr)
                assert lowest[at] in possible, image.place(insn.addr)
                counts["accesses"] += 1
                counts["exact"] += possible.exact is not None
            at += 1
    return counts


@pytest.mark.slow("compiles programs and executes them on many inputs")
@pytest.mark.parametrize("vector", VECTORS)
def test_values_cover_what_the_kernel_did(recorded: Trace, vector: str) -> None:
    image = Image.load(build.kernel())
    symbol = image.symbol(f"vector_{vector}")
    assert symbol is not None
    graph = expand(extract(image, [symbol.addr]), symbol.addr, image)
    values = analyse(graph, image)
    runs = [e for e in recorded.executions if e.entry == symbol.addr]
    counts: Counter[str] = Counter()
    for execution in runs[:: max(1, len(runs) // EACH)]:
        counts += compare(execution, image, values)
    assert counts["executions"] >= 5
    assert counts["exact"] > counts["accesses"] / 10
