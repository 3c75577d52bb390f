"""A witness of a bound: an execution near the worst path, from a state that the analysis covers.

The state is found along the worst path (``wcet.refinement.state_search``), and climbed from
(``wcet.refinement.climb``). Its execution is charged as the analysis charges each path, and run on
the concrete machine of the board, from caches that are cold, full of other lines, or mixed. It
violates no fact about counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from pipeline.native import SplitMix
from quoll.errors import UsageError
from quoll.recordings.follow import NodeVisit
from wcet.analysis.seen_executions import SeenExecution
from wcet.executions.path_replay import (
    ReplayPath,
    StartContents,
    executed,
    random_machine,
    replay,
)
from wcet.platforms.platform_model import Platform
from wcet.refinement.climb import climbed
from wcet.refinement.directed_execution import DirectedExecution
from wcet.refinement.state_search import StateSearch

__all__ = ["witness"]

EVIDENCE = "a state that wcet refine found"
SEED = 1


def witness(name: str, search: StateSearch, platform: Platform, climb: int) -> SeenExecution | None:
    """An execution of the entry ``name`` near the worst path; None: none is found.

    ``climb``: the most steps that are climbed from the first state.
    """
    if search.program.paths.start is not None:
        return None
    steps = search.program.answer.worst.path.steps
    worst = [step.edge for step in steps if step.edge is not None]
    first = search.along(worst) or search.along(())
    if first is None:
        return None
    found = climbed(search, first, worst, climb, Random(f"{SEED} {name}"))
    try:
        cycles = max(on_machine(name, search, found.execution, platform))
    except UsageError:  # the concrete machine does not have such caches
        return None
    return SeenExecution(cycles, found.cycles, EVIDENCE, tuple(found.words.items()))


def on_machine(
    name: str, search: StateSearch, found: DirectedExecution, platform: Platform
) -> Iterator[int]:
    """The cycles of the execution on the concrete machine, from each kind of caches."""
    visits = [
        NodeVisit(step.node, step.edge, start)
        for step, start in zip(found.steps, found.starts, strict=True)
    ]
    path = ReplayPath.of(search.program.paths.graph, visits)
    for contents in StartContents:
        random = SplitMix(Random(f"{SEED} {name} {contents.name}").getrandbits(64))
        steps = executed(path, found.accesses, platform, random)
        machine = random_machine(platform, steps, contents, random)
        yield replay(machine, steps, exception=name in platform.entries)
