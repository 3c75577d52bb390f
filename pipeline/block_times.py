"""Times of blocks whose references all hit, followed across block boundaries.

The pipeline state at the start of a node is the maximum over all paths to it; the worst possible
state stands at the entry (rule 15). A node costs the cycles from its first issue slot to the slot
after its last instruction. After a transfer of control, each edge adds the cycles of the transfer
beyond its own slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cache.data_cache import DataAddresses
from cache.events import FlowOrder
from pipeline import dual_issue
from pipeline.classes import is_branch
from pipeline.core import CoreTable, load_core
from pipeline.demand import InsnDemand, demand
from pipeline.dual_issue import DualStepper
from pipeline.maxplus import BlockStepper, IssueTime, State, join, leq, worst
from pipeline.timing_model import TimingModel
from quoll.arm.insn import ControlFlow, Insn
from quoll.cfg.cfg import Block, EdgeKind
from quoll.graph.fixpoint import solve
from quoll.inlining.supergraph import Supergraph

__all__ = ["BlockTime", "BlockTimer", "BlockTimes", "block_times", "mispredicted_return"]

WRONG_RETURN, WRONG_LOADED_RETURN = 7, 9  # cycles (DDI 0301, tables 16-11, 16-12 and 16-19)


@dataclass(frozen=True, slots=True)
class BlockTime:
    """Cycles of one block from one state: ``issue + stall`` in the node, the rest on edges.

    ``taken`` and ``falls`` hold the extra cycles and the state after the last instruction transfers
    control, and after it does not. ``drain`` is the remaining latency of the last results after
    ``taken`` (after ``falls`` for a block that cannot transfer).
    """

    issue: int
    stall: int
    taken: tuple[int, State] | None
    falls: tuple[int, State]
    drain: int
    steps: tuple[IssueTime, ...]

    @property
    def leaving(self) -> int:
        """Extra cycles when the path ends after the block: the maximum of both ways."""
        return max(self.falls[0], self.taken[0] if self.taken is not None else 0)


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """The time of each node; None for a node that the entry does not reach."""

    nodes: tuple[BlockTime | None, ...]
    takes: tuple[bool, ...]  # per edge: whether the source's last instruction transfers control
    core: CoreTable


def block_times(
    graph: Supergraph,
    flow: FlowOrder,
    addresses: DataAddresses,
    timer: BlockTimer,
    *,
    entry: State | None = None,
) -> BlockTimes:
    """Times of all nodes. ``entry`` is the state at the entry; the default is the worst one.

    Raises TimingError, naming the instruction, where the core description has no row.
    """
    model = _Model(graph, addresses, timer)
    start = timer.start if entry is None else entry
    fixed = solve(flow.graph, flow.order, model, start)
    nodes = tuple(
        None if state is None else model.time(n, state) for n, state in enumerate(fixed.states)
    )
    return BlockTimes(nodes, tuple(model.takes), timer.core)


class BlockTimer:
    """Times of single blocks: each block is timed once per start state, for all graphs it is in."""

    def __init__(self, timing: TimingModel, *, aligned: bool) -> None:
        self.timing, self.aligned = timing, aligned
        self.core = load_core(timing.core, timing.profile, timing.own_rows)
        self.flags_to_target = self.core.row("FLAGS_TO_TARGET").latency[0]
        self.start = dual_issue.worst(self.core.longest)
        if not self.core.dual_issue:
            self.start = worst(self.core.longest, self.flags_to_target)
        self._times: dict[tuple[object, ...], BlockTime] = {}
        self._demands: dict[tuple[object, ...], Sequence[InsnDemand]] = {}
        # keeps the block alive, so its id stays unique
        self._lists: dict[int, tuple[Block, tuple[int, ...]]] = {}

    def lists(self, block: Block) -> tuple[int, ...]:
        """The instructions of a block that move several words."""
        known = self._lists.get(id(block))
        if known is None:
            found = (
                i
                for i, insn in enumerate(block.insns)
                if insn.memory is not None and insn.memory.count > 1
            )
            known = self._lists[id(block)] = block, tuple(found)
        return known[1]

    def time(self, block: Block, alignment: tuple[bool, ...], state: State) -> BlockTime:
        """The time of a block; ``alignment``: which of ``lists`` start at a multiple of 8."""
        key = (id(block), alignment, state)
        time = self._times.get(key)
        if time is None:
            time = self._times[key] = self._run(block, alignment, state)
        return time

    def _demands_of(self, block: Block, alignment: tuple[bool, ...]) -> Sequence[InsnDemand]:
        key = (id(block), alignment)
        demands = self._demands.get(key)
        if demands is None:
            aligned8 = dict(zip(self.lists(block), alignment, strict=True))
            demands = self._demands[key] = [
                demand(self.core, insn, aligned=self.aligned, aligned8=aligned8.get(i, False))
                for i, insn in enumerate(block.insns)
            ]
        return demands

    def _run(self, block: Block, alignment: tuple[bool, ...], state: State) -> BlockTime:
        demands = self._demands_of(block, alignment)
        stepper = self._stepper(state)
        for d in demands:
            stepper.run(d)
        last, step = demands[-1], stepper.steps[-1]
        stall = sum(s.stall for s in stepper.steps)
        if last.taken is None:
            end = stepper.at
            after = stepper.after(end)
            return BlockTime(
                end - stall, stall, None, (0, after), max(0, *after), tuple(stepper.steps)
            )
        slot = step.start + 1
        taken, falls = self._transfer(block.last, last, step.start, stepper.target_allowed)
        states = stepper.after(taken), stepper.after(falls)
        return BlockTime(
            slot - stall,
            stall,
            (taken - slot, states[0]),
            (falls - slot, states[1]),
            max(0, *states[0]),
            tuple(stepper.steps),
        )

    def _stepper(self, state: State) -> BlockStepper | DualStepper:
        if self.core.dual_issue:
            return DualStepper(state)
        return BlockStepper(state, self.timing.profile, self.flags_to_target)

    def _transfer(self, insn: Insn, d: InsnDemand, start: int, allowed: int) -> tuple[int, int]:
        """Next issue slot after a transfer of control, taken and not taken."""
        assert d.taken is not None
        constant = self.timing.branches.constant
        if constant is not None and is_branch(insn):
            return start + constant, start + constant
        taken = start + d.taken
        if constant is None and d.flags_to_target:
            taken = max(taken, allowed)
        # Without a row for the failing case the instruction always transfers control.
        falls = start + (d.not_taken if d.not_taken is not None else d.taken)
        # If a branch is predicted to be taken and is not, control goes to the next instruction as
        # late as to the target of a taken one (DDI 0301, table 16-11). Correct predictions take
        # less, folded branches nothing: all of them are covered, as times are monotone.
        prediction = self.timing.branches.prediction
        wrong = insn.conditional and prediction.follows(insn)
        if prediction.predicts_return(insn):
            taken = max(taken, start + mispredicted_return(insn))
        return taken, max(falls, taken) if wrong else falls


class _Model:
    """Instance of ``quoll.graph.fixpoint.AbstractDomain`` over ``State``."""

    def __init__(self, graph: Supergraph, addresses: DataAddresses, timer: BlockTimer) -> None:
        self.graph, self.addresses, self.timer = graph, addresses, timer
        self.takes = [self._takes(e) for e in range(len(graph.edges))]
        self._aligned8: list[tuple[bool, ...] | None] = [None] * len(graph.nodes)

    def _takes(self, edge: int) -> bool:
        kind = self.graph.edges[edge].kind
        last = self.graph.nodes[self.graph.edges[edge].src].block.last
        return kind is not EdgeKind.FALLTHROUGH and transfers(last)

    def transfer(self, edge: int, state: State) -> State | None:
        time = self.time(self.graph.edges[edge].src, state)
        if self.graph.passed(edge):
            return self.timer.start  # rule 2: the replaced function may leave anything under way
        if self.takes[edge]:
            assert time.taken is not None
            return time.taken[1]
        return time.falls[1]

    def join(self, node: int, a: State, b: State) -> State:
        return join(a, b)

    def widen(self, node: int, old: State, new: State) -> State:
        return join(old, new)  # figures never exceed ``core.longest`` by more than an issue

    def leq(self, a: State, b: State) -> bool:
        return a == b or leq(a, b)

    def time(self, node: int, state: State) -> BlockTime:
        block = self.graph.nodes[node].block
        return self.timer.time(block, self._alignment(node, block), state)

    def _alignment(self, node: int, block: Block) -> tuple[bool, ...]:
        """Whether each instruction that moves several words starts at a multiple of 8."""
        known = self._aligned8[node]
        if known is None:
            lists = self.timer.lists(block)
            known = self._aligned8[node] = tuple(self._is_aligned8(node, i) for i in lists)
        return known

    def _is_aligned8(self, node: int, insn: int) -> bool:
        values = self.addresses.access(node, insn)
        return values is not None and (values.low | values.stride) % 8 == 0


def mispredicted_return(insn: Insn) -> int:
    """Cycles between the issue of a return and of its target after a wrong prediction."""
    return WRONG_RETURN if insn.memory is None else WRONG_LOADED_RETURN


def transfers(insn: Insn) -> bool:
    """Whether ``insn`` may write the pc."""
    return insn.flow not in (
        ControlFlow.NEXT,
        ControlFlow.WAIT,
        ControlFlow.TRAP,
        ControlFlow.UNDEFINED,
    )
