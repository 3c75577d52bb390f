"""Indirect transfers that the preceding code decides, independent of the rest of a function.

The last instructions on the only path to a transfer are interpreted from an unknown state. The
result holds in every execution, so no fixed point over the whole function is needed. Most jump
tables are found in this way: the comparison with the size of the table stands next to the jump.

If even a fixed point cannot determine the target, because it comes from writable memory or through
a call (``quoll.indirect.reaching_definitions``), the result says so at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_state import FLAG, SLOTS, AbstractState
from quoll.abstract_domain.function_values import BlockCode, environment_of
from quoll.abstract_domain.transfer import run
from quoll.arm.insn import LR, PC, Condition, ControlFlow, Insn
from quoll.assumptions import Assumption
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.cfg.link_register import computed_address
from quoll.cfg.transfers import TransferEffect, callee_at, is_call, literal
from quoll.image.image import Image
from quoll.indirect.backward_slice import BackwardSlice
from quoll.indirect.leading_zeros import by_magnitude
from quoll.indirect.reaching_definitions import (
    OpaqueOrigin,
    OriginKind,
    may_decide,
    opaque_origin,
)
from quoll.indirect.returns import UnresolvedReason
from quoll.indirect.tables import (
    PathBlock,
    PathInterpreter,
    TargetSelection,
    TransferPath,
    links,
    selected,
    target_of,
)

__all__ = ["LocalResolver", "ResolutionEvidence"]

CHAIN = 6  # most blocks before the transferring one
WAYS = 32  # most paths to one transfer
STARTS = 24  # most places from which the code is interpreted
SMALL = 32  # most instructions of a small function
ANYTHING, COMPUTED = -1, -2  # positions of symbols made before a path starts

# An effect, whether it is a call, and the named assumptions of this result
_Interpreted = tuple[TransferEffect, bool, frozenset[Assumption]] | None


@dataclass(frozen=True, slots=True)
class ResolutionEvidence:
    """The dependences of results: named assumptions (rule 1), and the interpreted code."""

    assumptions: set[Assumption] = field(default_factory=set)
    interpreted: dict[Hashable, _Interpreted] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _BlockChain:
    """The only path to a transfer: its block first, each with the edge that leaves it."""

    blocks: tuple[tuple[Block, EdgeKind | None], ...]

    @staticmethod
    def of(cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block) -> _BlockChain:
        return _BlockChain(((block, None),)).extended(cfg, into)

    def extended(self, cfg: Cfg, into: Mapping[int, Sequence[Edge]]) -> _BlockChain:
        """Extended backwards, up to a join of several edges."""
        found = list(self.blocks)
        block = found[-1][0]
        while len(found) < CHAIN and block.index != 0:
            entering = into.get(block.index, ())
            if len(entering) != 1 or entering[0].kind is EdgeKind.ACROSS:
                break
            block = cfg.blocks[entering[0].src]
            found.append((block, entering[0].kind))
        return _BlockChain(tuple(found))

    def ways(self, cfg: Cfg, into: Mapping[int, Sequence[Edge]]) -> list[_BlockChain]:
        """This chain after each edge that enters its start; empty if one edge is unknown."""
        block = self.blocks[-1][0]
        entering = into.get(block.index, ())
        known = block.index != 0 and all(edge.kind is not EdgeKind.ACROSS for edge in entering)
        if not known or len(self.blocks) == CHAIN or not 1 < len(entering) <= WAYS:
            return []
        return [
            _BlockChain((*self.blocks, (cfg.blocks[edge.src], edge.kind))).extended(cfg, into)
            for edge in entering
        ]

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal code."""
        return tuple((block.addr, len(block.insns), edge) for block, edge in self.blocks)


class LocalResolver:
    """Decides transfers of the functions of one image."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._code = BlockCode()
        self._known: dict[Hashable, _Interpreted] = {}

    def learn(self, used: ResolutionEvidence) -> None:
        """Cache results that another process found."""
        self._known.update(used.interpreted)

    def __call__(
        self, cfg: Cfg, sites: Set[int], used: ResolutionEvidence
    ) -> dict[int, tuple[TransferEffect, bool] | UnresolvedReason | None]:
        """The effect of each indirect transfer at ``sites``, and whether it is a call.

        An ``UnresolvedReason`` if it cannot be known; None if the values of the whole function may
        decide it. ``used`` collects the dependences of the results.
        """
        if not sites:
            return {}
        # values of a small function cost little, and may prove that the transfer is never made
        small = sum(len(block.insns) for block in cfg.blocks) <= SMALL
        into: dict[int, list[Edge]] = {}
        for edge in cfg.edges:
            into.setdefault(edge.dst, []).append(edge)
        found: dict[int, tuple[TransferEffect, bool] | UnresolvedReason | None] = {}
        for block in cfg.blocks:
            if block.last.addr in sites:
                found[block.last.addr] = self._decided(cfg, into, block, used, small=small)
        return found

    def _decided(
        self,
        cfg: Cfg,
        into: Mapping[int, Sequence[Edge]],
        block: Block,
        used: ResolutionEvidence,
        *,
        small: bool,
    ) -> tuple[TransferEffect, bool] | UnresolvedReason | None:
        """The result for one transfer; targets from the caller, the usual case, are found first."""
        origin = opaque_origin(cfg, into, block, self._image)
        if origin is not None and (not small or self._is_hopeless(cfg, into, block, origin)):
            return UnresolvedReason(str(origin))
        chain = _BlockChain.of(cfg, into, block)
        return self._constant(cfg, chain, used) or self._each_way(cfg, into, chain, used)

    def _is_hopeless(
        self, cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block, origin: OpaqueOrigin
    ) -> bool:
        """Whether the values of a small function would add nothing to ``origin``.

        For a jump they may make a function without a symbol part of its callers.
        """
        if is_call(block) and origin.kind is not OriginKind.WRITABLE_WORD:
            return True
        named = any(symbol.kind == "func" for symbol in self._image.symbols.at(cfg.entry))
        return (named or is_call(block)) and not may_decide(cfg, into, self._image)

    def _constant(
        self, cfg: Cfg, chain: _BlockChain, used: ResolutionEvidence
    ) -> tuple[TransferEffect, bool] | None:
        """The result from the code before the transfer, valid for any earlier code."""
        key = chain.key
        if key not in self._known:
            self._known[key] = self._interpreted(chain)
        found = used.interpreted[key] = self._known[key]
        if found is None:
            return None
        effect, calls, assumptions = found
        if not calls and _links_elsewhere(cfg, chain.blocks[0][0], self._image):
            return None
        used.assumptions.update(assumptions)
        return effect, calls

    def _each_way(
        self,
        cfg: Cfg,
        into: Mapping[int, Sequence[Edge]],
        chain: _BlockChain,
        used: ResolutionEvidence,
    ) -> tuple[TransferEffect, bool] | None:
        """The targets of a jump over all paths to it, as where a helper serves several tables."""
        results = [self._constant(cfg, way, used) for way in chain.ways(cfg, into)]
        effects = [result[0] for result in results if result is not None and not result[1]]
        if not effects or len(effects) < len(results):
            return None
        targets = tuple(target for effect in effects for target in effect.targets)
        tables = [effect.table for effect in effects if effect.table is not None]
        return TransferEffect(
            targets, table=min(tables) if len(tables) == len(effects) else None
        ), False

    def _interpreted(self, chain: _BlockChain) -> _Interpreted:
        environment = environment_of(self._image)
        interpreter = PathInterpreter(self._code, environment)
        last = chain.blocks[0][0].last
        best: tuple[TargetSelection, bool] | None = None
        paths: list[tuple[TransferPath, bool]] = []
        for path in _paths(chain, interpreter):
            leave = interpreter.follow(path, path.state)
            if leave is None:
                return None
            calls = is_call(chain.blocks[0][0]) or links(last, leave)
            paths.append((path, calls))
            constant = target_of(leave, environment)
            if constant is None:
                found = selected(interpreter, [(path, leave)])
            else:
                found = TargetSelection((constant,), None)
            if found is not None and (best is None or found.order < best[0].order):
                best = found, calls and not found.reads(last.next)
            if constant is not None or (found is not None and found.final):
                break
        else:
            if best is None or best[0].table is None:
                best = _by_magnitude(interpreter, paths) or best
        if best is None or environment.stacks:  # pointers into a switched stack are unknown
            return None
        choice, calls = best
        targets = tuple(callee_at(target, thumb=last.thumb) for target in choice.targets)
        return TransferEffect(targets, table=choice.table), calls, frozenset(environment.used)


def _by_magnitude(
    interpreter: PathInterpreter, paths: Sequence[tuple[TransferPath, bool]]
) -> tuple[TargetSelection, bool] | None:
    """The result for the longest path, which knows most of the compared words."""
    for path, calls in reversed(paths):
        found = by_magnitude(interpreter, path)
        if found is not None:
            return found, calls
    return None


def _links_elsewhere(cfg: Cfg, transfer: Block, image: Image) -> bool:
    """Whether lr may hold the address after a transfer that is no call by its form."""
    after = transfer.last.next
    for block in cfg.blocks:
        for insn in block.insns[:-2] if is_call(block) else block.insns:
            if LR not in insn.writes or PC not in insn.reads:
                continue
            constant = literal(image, insn)
            if constant is None:
                constant = computed_address(insn)
            if constant is None or constant & ~1 == after:
                return True
    return False


def _paths(chain: _BlockChain, interpreter: PathInterpreter) -> Iterator[TransferPath]:
    """Paths that end with the transfer, shortest first, from each start that may matter.

    A masked index has few values right after the masking, so a path starts there too.
    """
    transfer = chain.blocks[0][0].last
    needed = BackwardSlice(transfer, memory=False)
    rest: tuple[PathBlock, ...] = ()
    anything = _anything(interpreter.environment)
    starts = 0
    for position, (block, after) in enumerate(chain.blocks):
        insns = block.insns
        if after is not None:
            needed.branch(block.last)
        for start in range(len(insns) - 1, -1, -1):
            if insns[start] is not transfer and not needed.includes(insns[start]):
                continue
            starts += 1
            if starts > STARTS:
                return
            if insns[start].flow is ControlFlow.NEXT and insns[start].memory is None:
                code = interpreter.code(insns[start : start + 1])
                computed = run(code, anything, interpreter.environment, COMPUTED).fall
                if computed is not None and insns[start + 1 :]:
                    yield TransferPath(
                        computed, (_path_block(insns[start + 1 :], position, after), *rest)
                    )
            yield TransferPath(anything, (_path_block(insns[start:], position, after), *rest))
        rest = (_path_block(insns, position, after), *rest)


def _path_block(insns: tuple[Insn, ...], position: int, after: EdgeKind | None) -> PathBlock:
    executed = insns if after is None else on_the_way(insns, after)
    return PathBlock(executed, position + CHAIN * len(insns), after)


def _anything(environment: AnalysisEnvironment) -> AbstractState:
    """The unknown state.

    Not even sp is a stack address here, so no stack word is recorded: other registers may point to
    it, which S1 excludes for no pointer (rule 1).
    """
    symbols = [environment.names.of(ANYTHING, register) for register in range(FLAG)]
    return AbstractState((*(s << 32 for s in symbols), *[None] * (SLOTS - FLAG)), {}, {}, {}, {})


BRANCHES = (ControlFlow.JUMP, ControlFlow.CALL, ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
ALL = (1 << 16) - 1  # a bit for each state of N, Z, C and V


def _holds(cond: Condition, state: int) -> bool:
    """Whether a condition holds (ARM ARM A8.3)."""
    n, z, c, v = (bool(state & bit) for bit in (8, 4, 2, 1))
    plain = (z, c, n, v, c and not z, n == v, n == v and not z, True)[cond >> 1]
    return plain != bool(cond & 1) if cond is not Condition.AL else True


STATES = {cond: sum(1 << s for s in range(16) if _holds(cond, s)) for cond in Condition}


def on_the_way(insns: tuple[Insn, ...], edge: EdgeKind) -> tuple[Insn, ...]:
    """``insns``, a block or the end of one, without instructions skipped before ``edge``.

    The flag states in which the branch goes this way are traced backwards. An instruction whose
    condition holds in none of them is skipped.
    """
    last = insns[-1]
    if last.flow not in BRANCHES or edge not in (EdgeKind.TAKEN, EdgeKind.FALLTHROUGH):
        return insns
    if not last.conditional:
        return insns
    states = STATES[last.cond]
    if edge is EdgeKind.FALLTHROUGH:
        states ^= ALL
    path = [last]
    for insn in reversed(insns[:-1]):
        executed = STATES[insn.cond]
        if not states & executed and not insn.sets_flags:
            continue
        path.append(insn)
        if insn.sets_flags:
            states = executed | (states & ~executed)
    return tuple(reversed(path))
