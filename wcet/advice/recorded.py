"""Maximum counts in recorded executions: lower limits of any valid fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.core import issue_width
from quoll.errors import InputError
from quoll.recordings.address_trace import read_recording
from quoll.recordings.follow import follow
from quoll.recordings.trace import End
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import whole_graph
from wcet.analysis.result import EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog

__all__ = ["RecordedCounts", "recorded"]


@dataclass(frozen=True, slots=True)
class RecordedCounts:
    """``most``: by address of a block, its most executions in one of the ``executions``.

    Blocks that no execution runs are absent: recordings say nothing about them.
    """

    executions: int = 0
    most: Mapping[int, int] = field(default_factory=dict)


def recorded(
    kernel: Path, options: AnalysisOptions, entry: EntryResult, files: Sequence[Path]
) -> RecordedCounts:
    """The counts of all complete executions of ``entry`` in ``files``, counted as facts do.

    Raises InputError if there is none, MissingEdge for an execution of another kernel.
    """
    if not files:
        return RecordedCounts()
    run = AnalysisRun.begin(
        kernel, replace(options, vivu=replace(options.vivu, unroll=False)), SilentStageLog()
    )
    width = issue_width(run.platform.timing)
    graph = whole_graph(run, run.entries[entry.name])
    executions, most, known = 0, Counter[int](), set[bytes]()
    for file in files:
        for execution in read_recording(file, run.image).from_entries({entry.address}).executions:
            if execution.entry != entry.address or execution.end is End.STOPPED:
                continue
            executions += 1
            path = execution.pcs.tobytes()
            if path not in known:
                known.add(path)
                visits = follow(graph, run.image, execution.pcs, width)
                most |= Counter(graph.nodes[visit.node].block.addr for visit in visits)
    if not executions:
        raise InputError(
            f"no recorded execution of {entry.name} ran to its end",
            hint="was this kernel recorded, and did that happen?",
        )
    return RecordedCounts(executions, most)
