"""Hill climbing from a state at the entry to one for whose path the analysis charges more.

The worst path of the integer program need not be feasible, and the search for a state along it
decides greedily: an early decision of few cycles may exclude a late one of many. So a step takes
the best state so far and changes it in one place. Mostly a decision of its execution is taken the
other way, and behind it the worst path is wanted again; sometimes a bit of a word of the state
changes. The new state counts if the charge is not less. Decisions on the words that a deviation
from the worst path depends on are tried more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from quoll.inlining.supergraph import Supergraph
from wcet.refinement.directed_execution import WantedPath
from wcet.refinement.state_search import FoundState, StateSearch

__all__ = ["climbed"]

WORDS = 0.2  # the share of steps that change a word
RELATED = 16  # how much more often decisions on the same words are tried


def climbed(
    search: StateSearch, first: FoundState, worst: Sequence[int], steps: int, random: Random
) -> FoundState:
    """The state of the largest charge after ``steps`` steps from ``first``, or fewer.

    ``worst``: the edges of the worst path. It ends early when a state takes all of them, and when
    the time of ``search`` is over.
    """
    graph, best = search.program.paths.graph, first
    most = search.program.answer.worst.solution.cycles
    for _ in range(steps):
        if best.cycles >= most or search.over():
            break
        found = changed(search, best, random)
        if found is None:
            wanted = Mutations.of(graph, best, worst).drawn(random)
            found = None if wanted is None else search.along(wanted)
        if found is not None and found.cycles >= best.cycles:
            best = found
    return best


def changed(search: StateSearch, best: FoundState, random: Random) -> FoundState | None:
    """The execution with another bit in a word, in some of the cases; None if it is shorter."""
    if random.random() >= WORDS or not best.words:
        return None
    name = random.choice(sorted(best.words))
    other = best.words[name] ^ 1 << random.randrange(32)
    found = search.with_words({**best.words, name: other})
    if found is None or found.cycles < best.cycles:
        return None
    return search.along([step.edge for step in found.steps if step.edge is not None])


@dataclass(frozen=True, slots=True)
class Mutations:
    """The decisions of a path that can go another way.

    ``deviations``: the steps that do not go on along the worst path, ``ahead``: the edges of it
    that each step has in front of itself.
    """

    graph: Supergraph
    found: FoundState
    worst: Sequence[int]
    deviations: tuple[int, ...]
    ahead: tuple[int, ...]

    @staticmethod
    def of(graph: Supergraph, found: FoundState, worst: Sequence[int]) -> Mutations:
        """The decisions of ``found``."""
        path, deviations, ahead = WantedPath(graph, worst), [], []
        for number, step in enumerate(found.steps):
            ahead.append(path.place)
            wanted = path.edge(step.node)
            if wanted is not None and wanted != step.edge:
                deviations.append(number)
        return Mutations(graph, found, worst, tuple(deviations), tuple(ahead))

    def drawn(self, random: Random) -> list[int] | None:
        """The edges of the path with another decision, and of the worst path behind it."""
        choices = [number for number in self.found.decisions if self._others(number)]
        if not choices:
            return None
        [number] = random.choices(choices, [self._weight(number) for number in choices])
        taken = [step.edge for step in self.found.steps[:number] if step.edge is not None]
        return [
            *taken,
            random.choice(self._others(number)),
            *self.worst[self.ahead[number] :],
        ]

    def _weight(self, number: int) -> int:
        """More for a decision before the first deviation, on the same words."""
        first = next(iter(self.deviations), -1)
        about = self.found.decisions.get(first, frozenset())
        related = number <= first and not about.isdisjoint(self.found.decisions[number])
        return RELATED if related else 1

    def _others(self, number: int) -> list[int]:
        """The edges that a step did not take."""
        step = self.found.steps[number]
        return [e for e in self.graph.successors[step.node] if e != step.edge]
