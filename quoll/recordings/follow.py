"""Following a trace: the path of a recorded execution in a supergraph, or an error.

This is the first independent check that no edge is missing: a recorded execution is followed in
the graph, instruction by instruction. Facts and costs are tested on the paths found here. An
execution on an excluded path refutes the user's guidance (rule 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.assumptions import Assumption
from quoll.cfg.least_instructions import issued
from quoll.errors import FactsError, WcetError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph

CALLS = (ControlFlow.CALL, ControlFlow.INDIRECT_CALL)
WIDEST = 2  # instructions that a core issues in a cycle at most: no bundled core issues more

__all__ = [
    "WIDEST",
    "MissingEdge",
    "NodeVisit",
    "RefutedFact",
    "follow",
    "follow_prefix",
    "refuted",
]


class MissingEdge(WcetError):
    """An execution left the graph: the graph is incomplete, or a fact excluded a real edge."""

    code = "E111"


class RefutedFact(MissingEdge, FactsError):
    """An execution takes a path that ``fact`` excludes."""

    code = "E112"
    exit_status = FactsError.exit_status
    fact: Assumption | None = None


def refuted(fact: Assumption | None, but: str, *, where: str, hint: str) -> RefutedFact:
    """The error for an execution that contradicts ``fact``."""
    text = "" if fact is None else fact.claim
    error = RefutedFact(f"this execution refutes '{text}': {but}", where=where, hint=hint)
    error.fact = fact
    return error


@dataclass(frozen=True, slots=True)
class NodeVisit:
    """An executed node, and the edge by which it was left (None: the path ended).

    ``start`` is the position of its first instruction in the execution.
    """

    node: int
    edge: int | None
    start: int = 0


def follow(
    graph: Supergraph, image: Image, pcs: Sequence[int], width: int = WIDEST
) -> tuple[NodeVisit, ...]:
    """The path of ``graph`` that executes the instructions at ``pcs``, from entry to an exit.

    The path ends at the first exit after which no recorded instruction is in the graph. Later
    instructions (an idle thread in a privileged mode) are no part of it: the blocks of the path
    then have fewer instructions than ``pcs``. Instructions in a function that a fact replaces are
    skipped, up to the return of its call. Contexts make successors with equal addresses rare; if
    several nodes match, all are followed until the execution distinguishes them. ``width``: the
    most instructions that the core issues in a cycle. Raises MissingEdge at the first instruction
    or edge that is missing in the graph, RefutedFact if a fact removed it, or replaced a function
    that takes longer.
    """
    path = _Follower(graph, image, pcs, width).run()
    for required in graph.guidance.required:
        inside = [n for n in graph.nodes if _covers(n.block.insns, required.addresses)]
        passed = (graph.nodes[v.node].block.insns for v in path)
        if inside and not any(_covers(insns, required.addresses) for insns in passed):
            raise refuted(
                required.fact,
                "it does not pass there",
                where=image.place(pcs[0]),
                hint="remove the fact, or leave out the executions that it is not about",
            )
    return path


def follow_prefix(
    graph: Supergraph, image: Image, pcs: Sequence[int], width: int = WIDEST
) -> tuple[NodeVisit, ...]:
    """As ``follow``, but as far as the graph has edges for it.

    The last visit has no edge, whether the path may end there or the execution continues elsewhere.
    """
    follower = _Follower(graph, image, pcs, width)
    try:
        return follower.run()
    except RefutedFact:
        raise
    except MissingEdge:
        return follower.so_far()


def _covers(insns: Sequence[Insn], addresses: frozenset[int]) -> bool:
    return any(insn.addr in addresses for insn in insns)


class _Follower:
    """The nodes in which an execution can be, step by step."""

    def __init__(
        self, graph: Supergraph, image: Image, pcs: Sequence[int], width: int = WIDEST
    ) -> None:
        self.graph, self.image, self.pcs, self.width = graph, image, pcs, width
        self.exits = frozenset(graph.exits)
        # Per step: node -> (predecessor, edge), and the start of the step in the execution.
        self.trail: list[tuple[dict[int, tuple[int, int]], int]] = []

    def run(self) -> tuple[NodeVisit, ...]:
        graph, pcs = self.graph, self.pcs
        current: dict[int, tuple[int, int]] = {graph.entry: (-1, -1)}
        at = 0
        while True:
            current = self._executed(current, at)
            self.trail.append((current, at))
            at += len(graph.nodes[next(iter(current))].block.insns)
            exits = [node for node in current if node in self.exits]
            current, after = self._following(current, at)
            if exits and not current:
                return self._path(min(exits))
            if at == len(pcs):
                raise self._missing(at, "the execution ends here, where no path may end")
            if not current:
                place = self.image.place(pcs[at])
                message = f"the execution goes on at {place}, to which there is no edge"
                raise self._missing(at, message)
            at = after

    def so_far(self) -> tuple[NodeVisit, ...]:
        """The path up to its last node in the graph; empty if it never was in the graph."""
        return self._path(min(self.trail[-1][0])) if self.trail else ()

    def _following(
        self, current: dict[int, tuple[int, int]], at: int
    ) -> tuple[dict[int, tuple[int, int]], int]:
        """The possible nodes after ``current``, and the position in the execution."""
        graph, pcs = self.graph, self.pcs
        if at >= len(pcs):
            return {}, at
        edges = [(node, e) for node in current for e in graph.successors[node]]
        direct: dict[int, tuple[int, int]] = {}
        for node, e in edges:
            edge = graph.edges[e]
            if graph.nodes[edge.dst].block.addr == pcs[at] and not graph.passed(e):
                direct[edge.dst] = node, e
        if direct:
            return direct, at
        for node, e in edges:
            if graph.passed(e):
                after = self._returned(graph.edges[e].dst, at)
                if after is not None:
                    self._check_replaced(e, at, after)
                    return {graph.edges[e].dst: (node, e)}, after
        return {}, at

    def _returned(self, node: int, at: int) -> int | None:
        """The first position from ``at`` on at which ``node`` starts."""
        addr = self.graph.nodes[node].block.addr
        return next((i for i in range(at, len(self.pcs)) if self.pcs[i] == addr), None)

    def _check_replaced(self, edge: int, start: int, end: int) -> None:
        """Check the stated cycles: the core issues at most ``width`` instructions in each."""
        graph = self.graph
        called = self.pcs[start] if end > start else None
        block = graph.nodes[graph.edges[edge].src].block
        if called not in block.passes:
            return
        limit = graph.guidance.replaced[called]
        plain = sum(map(self._issued, self.pcs[start:end]))
        least = plain // self.width
        if limit.cycles is not None and least > limit.cycles:
            raise refuted(
                limit.fact,
                f"it runs {end - start} instructions there, {plain} of which are no branches: at "
                f"least {least} cycles",
                where=self.image.place(called),
                hint="give the function more cycles",
            )

    def _issued(self, pc: int) -> int:
        code = self.image.read(pc, 4) or self.image.read(pc, 2)
        return 0 if code is None else issued([decode(code, pc, self.image.thumb_at(pc) is True)])

    def _executed(
        self, candidates: dict[int, tuple[int, int]], at: int
    ) -> dict[int, tuple[int, int]]:
        """The candidates whose block matches the execution from position ``at`` on."""
        graph, pcs = self.graph, self.pcs
        fitting = {}
        for node, came in candidates.items():
            addresses = [insn.addr for insn in graph.nodes[node].block.insns]
            if list(pcs[at : at + len(addresses)]) == addresses:
                fitting[node] = came
        lengths = {len(graph.nodes[node].block.insns) for node in fitting}
        if len(lengths) != 1:
            raise MissingEdge(
                f"the execution leaves the middle of the block at {self.image.place(pcs[at])}",
                where=self.image.place(pcs[at]),
            )
        return fitting

    def _missing(self, at: int, message: str) -> MissingEdge:
        """The error for a step that is missing in the graph, naming the fact that removed it.

        Blocks that only lead to removed edges are gone too, so that a later step may be the removed
        one: of an edge that is removed in some contexts only, until the function returns.
        """
        removed = self.graph.guidance.removed
        frames = 0  # of functions entered since; negative once this one has returned
        for source, target in self._steps(at - 1) if removed else ():
            here = (r for r in removed if r.everywhere or frames >= 0)
            fact = next((r.fact for r in here if r.explains(source, target)), None)
            if fact is not None:
                to = "ends" if target is None else f"goes on at {self.image.place(target)}"
                return refuted(
                    fact,
                    f"it {to}",
                    where=self.image.place(source),
                    hint="remove the fact",
                )
            frames += self._entered(source, target) if frames >= 0 else 0
        return MissingEdge(message, where=self.image.place(self.pcs[at - 1]))

    def _entered(self, source: int, target: int | None) -> int:
        """1 if a step calls a function, -1 if it may return from one, else 0."""
        code = self.image.read(source, 4) or self.image.read(source, 2)
        if code is None or target is None:
            return 0
        insn = decode(code, source, self.image.thumb_at(source) is True)
        if target == insn.next:
            return 0
        if insn.flow in CALLS:
            return 1
        return -1 if insn.flow is ControlFlow.INDIRECT else 0

    def _steps(self, start: int) -> Iterator[tuple[int, int | None]]:
        yield from pairwise(self.pcs[start:])
        yield self.pcs[-1], None

    def _path(self, end: int) -> tuple[NodeVisit, ...]:
        """Walk back from the exit ``end`` in the last step."""
        node, visits = end, [NodeVisit(end, None, self.trail[-1][1])]
        for (step, _), (_, start) in zip(
            reversed(self.trail[1:]), reversed(self.trail[:-1]), strict=True
        ):
            node, edge = step[node]
            visits.append(NodeVisit(node, edge, start))
        return tuple(reversed(visits))
