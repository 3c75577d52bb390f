"""A witness of a bound: an execution near the worst path, from a state that the analysis covers.

The state is found along the worst path (``wcet.refinement.directed_execution``). Its execution is
charged as the analysis charges each path, and run on the concrete machine of the board, from caches
that are cold, full of other lines, or mixed. It violates no fact about counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

from ilp.constraints.constraint import UNLIMITED
from ilp.paths.path_check import path_cycles, violations
from loopbounds.proof.bound import CHECKERS
from pipeline.native import SplitMix
from quoll.errors import UsageError
from quoll.image.image import Image
from quoll.recordings.follow import NodeVisit
from wcet.analysis.integer_programs import StartProgram
from wcet.analysis.seen_executions import SeenExecution
from wcet.executions.path_replay import (
    ReplayPath,
    StartContents,
    executed,
    random_machine,
    replay,
)
from wcet.platforms.platform_model import Platform
from wcet.refinement.directed_execution import DirectedExecution, NodeValues
from wcet.refinement.entry_words import EntryWords, NotDirected

__all__ = ["witness"]

EVIDENCE = "a state at the entry that wcet refine found"
SEED = 1


def witness(
    name: str,
    program: StartProgram,
    image: Image,
    values: NodeValues,
    platform: Platform,
    seconds: float,
) -> SeenExecution | None:
    """An execution of the entry ``name`` near the worst path of ``program``; None: none is found.

    ``values``: of the graph of ``program``, whose paths start at the entry. ``seconds``: of
    processor time, for the queries.
    """
    if program.paths.start is not None:
        return None
    wanted = [step.edge for step in program.answer.worst.path.steps if step.edge is not None]
    words = EntryWords(end=time.process_time() + seconds)
    first = DirectedExecution(program.paths.graph, image, values, words)
    try:
        first.run(wanted)
        state = {name: value for name, value in (first.fixed | words.named()).items() if value}
        found = DirectedExecution(program.paths.graph, image, values, EntryWords(state))
        found.run(wanted)
    except NotDirected:
        return None
    if broken(program, found):
        return None
    try:
        cycles = max(on_machine(name, program, found, platform))
    except UsageError:  # the concrete machine does not have such caches
        return None
    charged = path_cycles(program.paths.costs, found.steps)
    return SeenExecution(cycles, charged, EVIDENCE, tuple(state.items()))


def broken(program: StartProgram, found: DirectedExecution) -> bool:
    """Whether the execution violates a stated bound of a loop, or a constraint."""
    bounds = [
        UNLIMITED if bound.method in CHECKERS else number
        for bound, number in zip(program.answer.bounds, program.answer.numbers, strict=True)
    ]
    steps, constraints = found.steps, program.inputs.constraints
    return bool(violations(program.paths.graph, bounds, constraints, steps))


def on_machine(
    name: str, program: StartProgram, found: DirectedExecution, platform: Platform
) -> Iterator[int]:
    """The cycles of the execution on the concrete machine, from each kind of caches."""
    visits = [
        NodeVisit(step.node, step.edge, start)
        for step, start in zip(found.steps, found.starts, strict=True)
    ]
    path = ReplayPath.of(program.paths.graph, visits)
    for contents in StartContents:
        random = SplitMix(Random(f"{SEED} {name} {contents.name}").getrandbits(64))
        steps = executed(path, found.accesses, platform, random)
        machine = random_machine(platform, steps, contents, random)
        yield replay(machine, steps, exception=name in platform.entries)
