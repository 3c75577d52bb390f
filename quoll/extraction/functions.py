"""The functions under construction: started, restarted, or merged into their callers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from quoll.arm.insn import ControlFlow, Insn
from quoll.assumptions import Assumption
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.cfg.discover import DiscoveryPolicy, FunctionBuilder
from quoll.cfg.growing_function import CalleeEntry, GrowingFunction
from quoll.cfg.link_register import is_jump_through
from quoll.cfg.unresolved import UnresolvedKind
from quoll.extraction.extraction_facts import ExtractionFacts
from quoll.image.image import Image

__all__ = ["FunctionTable", "ResolutionProgress", "function_name"]

LONGEST_HELPER = 16  # instructions of a function that may become part of its callers


@dataclass(slots=True)
class ResolutionProgress:
    """The queries about a function, and their results, since its last start.

    Transfers are identified by address; versions are versions of the function.
    """

    formed: set[int] = field(default_factory=set)  # transfers whose form was examined
    by_form: set[int] = field(default_factory=set)  # returns and calls to be confirmed
    queried: int | None = None  # version at the last query of values, or of the quick proof
    left: tuple[int, Set[int]] = (-1, frozenset())  # version, transfers left to values then
    locally_resolved: Set[int] = frozenset()  # transfers that the preceding code decided last
    called: int | None = None  # version at which calls through tables were examined
    claimed: bool = False  # whether values must check the claims by form
    lost: Insn | None = None  # last instruction to which its frame is followed
    unproved: dict[int, Assumption] = field(default_factory=dict)  # by return
    resumed: int | None = None  # version at which values were queried about exception returns
    passed: dict[int, Mapping[str, str]] = field(default_factory=dict)  # calls through arguments
    cfg: tuple[tuple[int, bool], Cfg] | None = None  # last graph: version, whether it returns

    def undecided(self, function: GrowingFunction) -> Set[int]:
        """The transfers that neither the form nor the preceding code decides.

        Transfers decided by the preceding code are queried again at the end. The quick proof checks
        claims by form first.
        """
        claims = function.returns & self.by_form
        version, left = self.left
        if version != function.version:
            left = function.sites - function.settled - self.locally_resolved - claims
        return left | claims if self.claimed else left


class FunctionTable:
    """The functions under construction, their callers, and the progress of each."""

    def __init__(
        self,
        image: Image,
        statements: ExtractionFacts,
        exits: frozenset[int],
        going_on: frozenset[int],
    ) -> None:
        self.functions: dict[int, GrowingFunction] = {}
        self.builders: dict[int, FunctionBuilder] = {}
        self.roots: set[int] = set()
        self.returning: set[int] = set()
        self._image = image
        self._named = {s.addr for s in image.symbols.symbols if s.kind == "func"}
        self._statements = statements
        self._exits, self._going_on = exits, going_on
        self._progress: dict[int, ResolutionProgress] = {}
        self._callers: dict[CalleeEntry, set[int]] = {}  # callee -> calling functions
        self._sharers: dict[int, set[int]] = {}  # branch target -> functions holding it
        self._inline: dict[int, set[int]] = {}  # function -> jumps that are no tail calls
        # function -> jumps that call, and their words in lr
        self._linked: dict[int, dict[int, frozenset[int]]] = {}
        self._fragments: set[int] = set()  # targets of bl that are no functions
        self._apart: dict[int, set[int]] = {}  # function -> targets of bl that are functions for it
        self._waiting: OrderedDict[int, None] = OrderedDict()  # to grow, in this order

    def start(self, root: CalleeEntry) -> None:
        """Start a function that needs no caller."""
        self.roots.add(root.entry)
        self.require(root)

    def require(self, callee: CalleeEntry) -> None:
        """Make ``callee`` a function; functions that held its code call it instead."""
        known = self.functions.get(callee.entry)
        if known is not None:
            if known.thumb != callee.thumb:
                self.builders[callee.entry].refuse(callee.entry, UnresolvedKind.CALLED_IN_BOTH_SETS)
                self._waiting[known.entry] = None
            return
        self._start(callee)
        for sharer in sorted(self._sharers.pop(callee.entry, set()) - {callee.entry}):
            self._restart(sharer)

    def _start(self, callee: CalleeEntry) -> None:
        entry = callee.entry
        linked: dict[int, Set[int]] = {**self._linked.get(entry, {})}
        policy = DiscoveryPolicy(
            self._exits,
            self._is_function,
            self.returning,
            frozenset(self._inline.get(entry, ())),
            self._fragments,
            frozenset(self._apart.get(entry, ())),
            self._statements.passed(entry),
            self._going_on,
            self._statements.supervisor_calls,
            self._statements.self_jumps_end is not None,
        )
        self.functions[entry] = function = GrowingFunction(*callee, linked, {entry})
        self.builders[entry] = FunctionBuilder(self._image, function, policy)
        self._progress[entry] = ResolutionProgress()
        self._waiting[entry] = None

    def _restart(self, entry: int) -> None:
        function = self.functions[entry]
        self._start(CalleeEntry(function.entry, function.thumb))

    def _is_function(self, addr: int) -> bool:
        return addr not in self._fragments and (addr in self.functions or self._has_symbol(addr))

    def _has_symbol(self, addr: int) -> bool:
        return addr in self._named

    def _is_fragment(self, function: GrowingFunction, *, own: bool = False) -> bool:
        """Whether ``function`` is made part of the functions that call it.

        Assembly code calls parts of itself that may return for their caller. Thumb helpers that
        call through a register, or return through a table, depend on their caller. If the function
        has a symbol, or the transfer is its ``own``, it must be such a helper.
        """
        entry = function.entry
        callers = self._calling(entry)
        helper = len(function.insns) <= LONGEST_HELPER and not function.calls
        stays = (
            entry in self.roots
            or entry in self._statements.switching
            or self._is_apart(entry)
            or self._is_tail_and_called(entry)
        )
        if stays or not callers or ((own or self._has_symbol(entry)) and not helper):
            return False
        self._fragments.add(entry)
        for caller in sorted(callers - self._fragments):
            self._restart(caller)
        return True

    def _sets_apart(self, function: GrowingFunction, insn: Insn) -> bool:
        """Whether the part at ``insn``, called to call through a register, is made a function
        again.

        Its callees are unknown, but its return addresses are known.
        """
        if not is_jump_through(insn) or not function.is_called(insn.addr):
            return False
        self._apart.setdefault(function.entry, set()).add(insn.addr)
        self._restart(function.entry)
        return True

    def _is_apart(self, entry: int) -> bool:
        return any(entry in targets for targets in self._apart.values())

    def _stands(self, entry: int) -> bool:
        """Whether the function can be queried now: it is not merged, and has nothing pending."""
        alone = entry not in self._fragments or self._is_apart(entry)
        return (alone or self._is_tail_and_called(entry)) and not self.builders[entry].growing

    def _is_tail_and_called(self, entry: int) -> bool:
        """Whether a function merged into its callers is also called through a register."""
        if entry not in self._fragments:
            return False
        calls = (self.functions[caller].calls for caller in self._calling(entry))
        return any(entry in called for sites in calls for called in sites.values())

    def _calling(self, entry: int) -> Set[int]:
        """The functions that call the one at ``entry`` in its current instruction set."""
        return self._callers.get(CalleeEntry(entry, self.functions[entry].thumb), frozenset())

    def calls_of(self, entry: int) -> Iterator[tuple[Cfg, Block]] | None:
        """The blocks that call the function at ``entry``; None if it is entered otherwise."""
        if entry in self.roots:
            return None
        graphs = (self.cfg(self.functions[caller]) for caller in sorted(self._calling(entry)))
        return ((cfg, block) for cfg in graphs for block in cfg.blocks if entry in block.calls)

    def cfg(self, function: GrowingFunction) -> Cfg:
        """The function as known now."""
        returns = function.entry in self.returning
        key = function.version, returns
        progress = self._progress[function.entry]
        if progress.cfg is None or progress.cfg[0] != key:
            name = function_name(self._image, function.entry)
            progress.cfg = key, built(function, name, returns=returns)
        return progress.cfg[1]


def function_name(image: Image, entry: int) -> str:
    """The name of the function at ``entry``: its symbol, or the nearest one and an offset."""
    found = image.symbol_at(entry)
    if found is None:
        return f"0x{entry:08x}"
    symbol, offset = found
    return f"{symbol.name}+0x{offset:x}" if offset else symbol.name


def built(function: GrowingFunction, name: str, *, returns: bool) -> Cfg:
    """The function as known now. Blocks start at leaders, and each is one run of code.

    Without ``returns`` control ends at its returns: the user stated that it never returns.
    """
    starts = sorted(function.leaders & function.insns.keys())
    starts.sort(key=lambda addr: addr != function.entry)
    blocks = [
        _block(function, index, _run_of(function, start), returns=returns)
        for index, start in enumerate(starts)
    ]
    index_at = {block.addr: block.index for block in blocks}
    return Cfg(
        function.entry,
        name,
        function.thumb,
        tuple(blocks),
        _edges(function, blocks, index_at),
        returns,
    )


def _run_of(function: GrowingFunction, leader: int) -> list[Insn]:
    """Instructions from the leader on, up to the end of its block."""
    insns, leaders, exits = function.insns, function.leaders, function.exits
    insn = insns[leader]
    run, addr, thumb = [insn], leader, insn.thumb
    while insn.flow is ControlFlow.NEXT and addr not in exits:
        addr += insn.size
        following = None if addr in leaders else insns.get(addr)
        if following is None or following.thumb is not thumb:
            break
        run.append(following)
        insn = following
    return run


def _block(function: GrowingFunction, index: int, insns: list[Insn], *, returns: bool) -> Block:
    last = insns[-1].addr
    tail = last in function.tails
    returned = last in function.returns and last not in function.unresolved
    return Block(
        index,
        tuple(insns),
        calls=tuple(sorted(function.calls.get(last, ()))),
        tail=tail,
        returns=returns and (returned or (tail and last in function.passes)),
        exits=last in function.exits,
        passes=tuple(sorted(function.passes.get(last, ()))),
        comes_back=tuple(sorted(function.linked.get(last, ()))),
        by_values=last in function.by_values,
        no_return=tail and last not in function.tail_returns and last not in function.passes,
    )


def _edges(
    function: GrowingFunction, blocks: list[Block], index_at: dict[int, int]
) -> tuple[Edge, ...]:
    last_to_block = {block.last.addr: block.index for block in blocks}
    edges = {
        (last_to_block[src], index_at[dst], kind)
        for src, dst, kind in function.edges
        if dst in index_at
    }
    for block in blocks:
        plain = block.last.flow is ControlFlow.NEXT and block.last.addr not in function.exits
        if plain and block.end in index_at:
            edges.add((block.index, index_at[block.end], EdgeKind.FALLTHROUGH))
    return tuple(sorted(map(Edge._make, edges), key=_by_exits))


def _by_exits(edge: Edge) -> tuple[int, int, str]:
    return edge.src, edge.dst, edge.kind.value
