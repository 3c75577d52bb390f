"""Loop bounds of ``analyse``, ``loops`` and ``masked`` compared: ``make campaign-agreement``.

    make campaign-agreement                            every shipped kernel, all its entries
    make campaign-agreement ARGS='k.elf --platform cubieboard --entry main --facts k.facts'

The three commands answer from the same stages: of each loop in each context they give the same
bound by the same method, and they refuse the same code. Prints a table, and each loop whose bounds
differ; ends with status 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.errors import WcetError
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.inlining.supergraph import Supergraph
from quoll.results.results_store import ResultsStore
from tests.testing.harness import build
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.preparation import prepare
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.masked.masked_entries import masked
from wcet.reports.entry_loops import loops_of, with_parameters

__all__ = ["Bounds", "Question", "bounds_of", "of_analyse", "of_loops", "of_masked"]

KERNELS = ("kzm-before", "kzm-after", "kzm-latency", "kzm-mcs", "cubieboard-after")
Q = TypeVar("Q")
A = TypeVar("A")

Loop = tuple[int | None, int, tuple[int | None, ...]]  # function of a summary, header, calls
Bounds = dict[Loop, tuple[int | None, str]]  # most executions per entry, and the method


@dataclass(frozen=True, slots=True)
class Question:
    """A file with the options of an analysis, which all three commands answer."""

    elf: Path
    options: AnalysisOptions

    @classmethod
    def of(
        cls,
        elf: Path,
        folder: Path,
        *,
        entry: str = "main",
        platform: str = "kzm",
        facts: Sequence[Path] = (),
        sharing: SummarySettings = NEVER,
    ) -> Question:
        """With a results store in ``folder``; all entries together take the kernel's facts."""
        store = ResultsStore(folder)
        options = AnalysisOptions(
            entries=(entry,),
            platform=platform,
            l2=None,
            facts=tuple(facts),
            neighbouring_facts=entry == "all",
            exits=(),
            solver="",
            time_limit=60.0,
            bounds=BoundOptions(store=store),
            store=store,
            summary_settings=sharing,
        )
        return cls(elf, options)

    def targets(self) -> Iterator[AnalysisTarget]:
        """The entries, in order."""
        run = AnalysisRun.begin(self.elf, self.options, SilentStageLog())
        return (AnalysisTarget(run, name, address) for name, address in run.entries.items())


def bounds_of(
    graph: Supergraph, bounds: Iterable[LoopBound], summary: int | None = None
) -> Iterator[tuple[Loop, tuple[int | None, str]]]:
    """Each bound by its loop and the calls that lead there."""
    for bound in bounds:
        node = graph.nodes[graph.loops[bound.loop].header]
        calls = tuple(call.call_site for call in graph.call_string(node.context))
        yield (summary, node.block.addr, calls), (bound.bound, bound.method)


def of_analyse(target: AnalysisTarget) -> Bounds:
    """The bounds that the integer program uses."""
    prepared, run = prepare(target), target.run
    found: Bounds = {}
    for paths in prepared.paths:
        found |= bounds_of(paths.graph, with_parameters(run, paths.graph, paths.bounds))
    for one in prepared.summaries:
        bounds = with_parameters(run, one.paths.graph, one.paths.bounds)
        found |= bounds_of(one.paths.graph, bounds, one.address)
    return found


def of_loops(target: AnalysisTarget) -> Bounds:
    """The bounds that ``wcet loops`` lists, without loops that no path repeats."""
    found: Bounds = {}
    for one in loops_of(target).loops:
        if one.bound.method != "pending":
            found |= bounds_of(one.graph, [one.bound], one.summary)
    return found


def of_masked(question: Question) -> dict[str, Bounds]:
    """The bounds of the loops in masked regions, by entry."""
    answer = masked(question.elf, question.options, SilentStageLog(), None)
    found: dict[str, Bounds] = {}
    for region in answer.regions:
        bounds = bounds_of(region.result.graph, region.result.bounds)
        found.setdefault(region.entry, {}).update(bounds)
    return found


def main() -> int:
    """Compare the files that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("elf", nargs="*", type=Path, help="in place of the shipped kernels")
    parser.add_argument("--platform", default="kzm")
    parser.add_argument("--entry", default="main")
    parser.add_argument("--facts", action="append", default=[], type=Path)
    given = parser.parse_args()
    print("| file | entry | loops of `analyse` | of `loops` | of `masked` | differ |")
    print("|---|---|---|---|---|---|", flush=True)
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for elf in given.elf:
            one = {"entry": given.entry, "platform": given.platform, "facts": given.facts}
            differ += compare(elf.name, Question.of(elf, Path(folder), **one))
        for name in KERNELS if not given.elf else ():
            board = name.partition("-")[0]
            question = Question.of(build.kernel(name), Path(folder), entry="all", platform=board)
            differ += compare(name, question)
    return 1 if differ else 0


def compare(name: str, question: Question) -> int:
    """Print a row for each entry; returns how many loops have different bounds."""
    regions = said(of_masked, question)
    total = 0
    for target in question.targets():
        analysed, listed = (said(of, target) for of in (of_analyse, of_loops))
        inside = regions if isinstance(regions, str) else regions.get(target.name, {})
        counts = [o if isinstance(o, str) else len(o) for o in (analysed, listed, inside)]
        wrong = list(differences(analysed, listed, inside))
        total += len(wrong)
        print(
            f"| {name} | {target.name} | {counts[0]} | {counts[1]} | {counts[2]} | {len(wrong)} |"
        )
        print(*(f"    {line}" for line in wrong), sep="\n", flush=True)
    return total


def said(command: Callable[[Q], A], question: Q) -> A | str:
    """The answer of a command, or its refusal."""
    try:
        return command(question)
    except WcetError as error:
        return f"refused: {type(error).__name__}"


def differences(
    analysed: Bounds | str, listed: Bounds | str, inside: Bounds | str
) -> Iterator[str]:
    """Loops with different bounds; ``masked`` has no bound for a loop that only a test ends."""
    if isinstance(analysed, str) or isinstance(listed, str):
        if isinstance(analysed, dict) or isinstance(listed, dict):
            yield f"analyse {analysed if isinstance(analysed, str) else 'bounds'}, loops not"
        return
    for loop in sorted(analysed.keys() | listed.keys(), key=str):
        if analysed.get(loop) != listed.get(loop):
            yield f"{loop}: analyse {analysed.get(loop)}, loops {listed.get(loop)}"
    for loop, bound in inside.items() if isinstance(inside, dict) else ():
        if loop in analysed and analysed[loop] != bound and bound[0] is not None:
            yield f"{loop}: analyse {analysed[loop]}, masked {bound}"


if __name__ == "__main__":
    sys.exit(main())
