"""A function summary: one bound for all calls, where full inlining grows too large.

A function is *summarised* if it is called from several contexts, its own inlining has a certain
size, and nothing couples it to its callers: it returns to them, it switches neither stack nor mode
on a path that continues, and no outer fact concerns its code. If a path may end in it, one may end
after each of its calls: the bound covers both. Its bound from unknown values, caches and pipeline
then replaces it in every caller, as a stated bound of a function does (rule 2): sound, and looser
than inlining, because it assumes nothing about its callers.

A limit on the executions of a place on the whole path couples nothing, if few ranges of its count
distinguish the function's calls (``count_ranges``): the summary has a bound for each of them.

A recursive function of at most n activations is analysed n times: first without its recursive
calls, then with the previous bound in their place. So each call stands for one activation less than
its caller, and the last bound covers n activations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import TypeGuard

from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.status import leaves_mode, state_change
from quoll.cfg.call_graph import CallGraph, call_graph
from quoll.cfg.cfg import Block, Cfg, Program
from quoll.facts.applied import FunctionReplacement, RecursionDepth
from quoll.facts.count_facts import AtMostFact
from quoll.facts.fact import Fact, FactStage
from quoll.facts.guidance import PathStartFact, RecursionFact
from quoll.facts.located import LocatedFacts

__all__ = [
    "MOST_RANGES",
    "NEVER",
    "SummaryCandidates",
    "SummarySettings",
    "count_ranges",
    "exceeds",
    "expansion",
    "is_total",
]

LOCAL = (
    FactStage.EXTRACTION,
    FactStage.VALUES,
    FactStage.LOOP_BOUNDS,
)  # facts whose places are independent


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """Summarise functions of ``least`` instructions or more, from ``contexts`` contexts on.

    Beyond ``most`` contexts, a function whose loops prevent a summary is not inlined: the loops
    need facts. Without ``cycles``, summaries have values only, for which no loop needs a bound.
    Above ``preemptible`` contexts that remain, functions with tests for interrupts get one, too.
    """

    contexts: int = 6_000
    least: int = 24
    most: int = 20_000
    cycles: bool = True
    preemptible: int = 1_500

    def __str__(self) -> str:
        """The text in a baseline."""
        return f"from {self.contexts} contexts, of {self.least} instructions or more"


NEVER = SummarySettings(contexts=1 << 62)
MOST_RANGES = 16  # bounds of one summary, for ranges of counts and classes of results


def expansion(graph: CallGraph, entry: int) -> Counter[int]:
    """Contexts of each function in the full inlining of ``entry``, recursion not followed."""
    rank = {function: at for at, function in enumerate(graph.order)}
    instances: Counter[int] = Counter({entry: 1})
    for function in reversed(graph.order):
        for call in graph.calls[function]:
            if rank[call.callee] < rank[function]:
                instances[call.callee] += instances[function]
    return +instances


@dataclass(frozen=True, slots=True)
class _Coupling:
    """The functions that one fact couples.

    ``scope``: functions whose invocations the fact concerns (empty: the whole path). ``places``:
    functions of its places.
    """

    scope: frozenset[int]
    places: frozenset[int]


def count_ranges(most: int) -> tuple[tuple[int, int], ...]:
    """Ranges of counts up to ``most``, as (least, most): 0, 1, 2, then each twice as long."""
    found, least = [(0, 0)], 1
    while least <= most:
        found.append((least, min(most, 2 * least - 2 or 1)))
        least = found[-1][1] + 1
    return tuple(found)


@dataclass(slots=True)
class SummaryCandidates:
    """Chooses functions to summarise, callees before callers; ``program`` has their summaries."""

    program: Program
    entry: int
    facts: LocatedFacts
    settings: SummarySettings
    sizes: dict[int, int] = field(default_factory=dict)  # contexts of a call, summaries left out
    inside: dict[int, frozenset[int]] = field(default_factory=dict)  # all callees, itself included
    limits: list[tuple[int, frozenset[int]]] = field(default_factory=list)  # ranges, functions
    replaced: list[int] = field(default_factory=list)
    inlined: set[int] = field(default_factory=set)

    @property
    def too_large(self) -> bool:
        """Whether inlining makes so many contexts that functions get summaries."""
        depths, most = self.program.guidance.depths, self.settings.contexts
        if self.settings == NEVER:
            return False
        return exceeds(call_graph(self.program), self.entry, depths, most)

    def candidates(self) -> Iterator[tuple[int, Program]]:
        """The functions to be analysed on their own, in sequence, each with its program.

        The caller answers each with ``replace_by`` before it draws the next one; otherwise the
        function stays inlined.
        """
        if not self.too_large:
            return
        graph = call_graph(self.program)
        instances = expansion(graph, self.entry)
        self.inside = _inside(graph)
        coupled = list(self._coupled())
        for members in _components(graph):
            calls, order = graph.calls, tuple(members)
            if len(members) > 1 or members & set(graph.callees(*members)):
                yield from self._recursive(members, coupled)
                below = call_graph(self.program)
                calls, order = below.calls, tuple(f for f in below.order if f in members)
            for function in order:
                if self.sizes.get(function) == 0:
                    continue
                self.sizes[function] = 1 + sum(self.sizes.get(c.callee, 1) for c in calls[function])
                if (
                    function != self.entry
                    and (instances[function] > 1 or len(members) > 1)
                    and self.sizes[function] >= self.settings.least
                    and self._is_closed(function, coupled)
                ):
                    yield function, self.program

    def _recursive(
        self, members: frozenset[int], coupled: Sequence[_Coupling]
    ) -> Iterator[tuple[int, Program]]:
        """One function on every recursive cycle of ``members``, once per activation."""
        before, depths, first = self.program, self.program.guidance.depths, len(self.replaced)
        for function in sorted(members & depths.keys()):
            cut = replace(before, functions=_without_calls(before, function))
            if any(members & others for others in call_graph(cut).recursive):
                continue
            if not self._is_closed(function, coupled):
                continue
            activations = depths[function].activations - (function == self.entry)
            for known in range(activations):
                yield (
                    function,
                    self.program if known else _without_recursive_calls(before, function),
                )
                if len(self.replaced) == first + known:  # the caller rejected it: it stays inlined
                    self.program = before
                    self.sizes.pop(function, None)
                    del self.replaced[first:]
                    break
            else:
                return

    def replace_by(self, function: int, replacement: FunctionReplacement) -> None:
        """Replace ``function`` by ``replacement`` in all its callers."""
        guidance = self.program.guidance
        self.program = replace(
            self.program,
            functions=_without_calls(self.program, function),
            guidance=replace(guidance, replaced={**guidance.replaced, function: replacement}),
        )
        self.sizes[function] = 0
        self.replaced.append(function)

    def leave(self, function: int) -> None:
        """Leave ``function`` inlined, and all functions that call it."""
        self.inlined.add(function)

    def exceeds_without(self, program: Program, functions: Set[int]) -> bool:
        """Whether ``program``, as at first, has too many contexts if ``functions`` are inlined.

        So are the functions that call them; the others with a summary are not.
        """
        for function in self.replaced:
            if not self.inside[function] & functions:
                program = replace(program, functions=_without_calls(program, function))
        depths = program.guidance.depths
        return exceeds(call_graph(program), self.entry, depths, self.settings.most)

    def _is_closed(self, function: int, coupled: Iterable[_Coupling]) -> bool:
        inside = self.inside[function]
        if not self.program.functions[function].returns or inside & self.inlined:
            return False
        if any(_leaves(self.program.functions[f]) for f in inside):
            return False
        return self._is_apart(function, coupled)

    def _is_apart(self, function: int, coupled: Iterable[_Coupling]) -> bool:
        """Whether no fact couples ``function`` to its callers, but few ranges of counts."""
        inside = self.inside[function]
        for fact in coupled:
            meant = not fact.scope or any(function in self.inside.get(g, ()) for g in fact.scope)
            if meant and not (fact.scope and fact.scope <= inside) and fact.places & inside:
                return False
        return prod(ranges for ranges, places in self.limits if places & inside) <= MOST_RANGES

    def preemptible(self) -> int | None:
        """The first function, callers first, to summarise with its tests; None if there is none.

        Several contexts call it, and it has a share of the contexts that are too many. One that
        never returns is called by instructions that call nothing else.
        """
        graph, depths = call_graph(self.program), self.program.guidance.depths
        if not exceeds(graph, self.entry, depths, self.settings.preemptible):
            return None
        instances, self.inside = expansion(graph, self.entry), _inside(graph)
        recursive = frozenset[int]().union(*graph.recursive)
        self.limits = []
        coupled = list(self._coupled())
        for function in reversed(graph.order):
            if (
                function != self.entry
                and instances[function] > 1
                and function not in self.inlined | recursive
                and expansion(graph, function).total() >= self.settings.least
                and not any(_leaves(cfg) for cfg in self._returning(function))
                and (self.program.functions[function].returns or _ends(self.program, function))
                and self._is_apart(function, coupled)
            ):
                return function
        return None

    def _returning(self, function: int) -> tuple[Cfg, ...]:
        """The functions inside of one that returns; none if it never returns."""
        if not self.program.functions[function].returns:
            return ()
        return tuple(self.program.functions[f] for f in self.inside[function])

    def _coupled(self) -> Iterator[_Coupling]:
        owner = {
            insn.addr: entry
            for entry, cfg in self.program.functions.items()
            for block in cfg.blocks
            for insn in block.insns
        }
        for fact in self.facts.facts:
            if fact.stage in LOCAL and not isinstance(fact, PathStartFact):
                continue
            if isinstance(fact, RecursionFact):
                continue
            places = frozenset(
                owner[address]
                for text in fact.places()
                for address in self.facts.at(fact, text).addresses
                if address in owner
            )
            if is_total(fact):
                self.limits.append((len(count_ranges(fact.count)), places))
                continue
            yield _Coupling(frozenset(f for f in self.facts.limits(fact) if f is not None), places)


def is_total(fact: Fact) -> TypeGuard[AtMostFact]:
    """Whether a fact limits the executions of a place on the whole path, and allows some."""
    return isinstance(fact, AtMostFact) and fact.function is None and fact.count > 0


def exceeds(graph: CallGraph, entry: int, depths: Mapping[int, RecursionDepth], most: int) -> bool:
    """Whether the full inlining of ``entry`` has more than ``most`` contexts."""
    bounded = sorted(depths)
    contexts = 0
    pending = [(entry, tuple(int(f == entry) for f in bounded))]
    while pending and contexts <= most:
        function, active = pending.pop()
        contexts += 1
        for call in graph.calls[function]:
            deeper = tuple(n + (f == call.callee) for f, n in zip(bounded, active, strict=True))
            if all(n <= depths[f].activations for f, n in zip(bounded, deeper, strict=True)):
                pending.append((call.callee, deeper))
    return contexts > most


def _components(graph: CallGraph) -> list[frozenset[int]]:
    """The sets of mutually recursive functions, and single functions; callees first."""
    around = {function: members for members in graph.recursive for function in members}
    return list(dict.fromkeys(around.get(f, frozenset({f})) for f in graph.order))


def _without_recursive_calls(program: Program, function: int) -> Program:
    """``program`` without recursive calls of ``function``."""
    depth = replace(program.guidance.depths[function], activations=1)
    depths = {**program.guidance.depths, function: depth}
    return replace(program, guidance=replace(program.guidance, depths=depths))


def _without_calls(program: Program, function: int) -> dict[int, Cfg]:
    """The functions of ``program``, with calls of one function replaced."""
    returns = program.functions[function].returns
    without = partial(_without_call, function=function, returns=returns)
    return {
        entry: replace(cfg, blocks=tuple(map(without, cfg.blocks)))
        for entry, cfg in program.functions.items()
    }


def _ends(program: Program, function: int) -> bool:
    """Whether nothing else is called, and nothing follows, where ``function`` is called."""
    return all(
        block.calls == (function,) and not (block.passes or block.returns or cfg.successors(at))
        for cfg in program.functions.values()
        for at, block in enumerate(cfg.blocks)
        if function in block.calls
    )


def _inside(graph: CallGraph) -> dict[int, frozenset[int]]:
    """The functions that each function may call, directly or not, itself included."""
    inside = {function: frozenset({function}) for function in graph.order}
    changed = True
    while changed:  # a second time only with recursion
        changed = False
        for function in graph.order:
            found = inside[function].union(*(inside[c.callee] for c in graph.calls[function]))
            if found != inside[function]:
                inside[function], changed = found, True
    return inside


def _leaves(cfg: Cfg) -> bool:
    """Whether the function changes the mode or the stack, and the path continues."""
    return any(
        insn.flow is ControlFlow.EXCEPTION_RETURN or (leaves_mode(insn) and not _only_masks(insn))
        for block in cfg.blocks
        for insn in (block.insns[:-1] if block.exits else block.insns)
    )


def _only_masks(insn: Insn) -> bool:
    """Whether ``insn`` only sets masks."""
    change = state_change(insn)
    return change is not None and change.enables is False and change.mode is None


def _without_call(block: Block, function: int, *, returns: bool) -> Block:
    if function not in block.calls:
        return block
    if not returns:  # as a tail call: nothing of the caller follows
        return replace(block, calls=(), passes=(function,), tail=True, exits=True, no_return=True)
    return replace(
        block,
        calls=tuple(c for c in block.calls if c != function),
        passes=(*block.passes, function),
        returns=block.returns or block.tail,
    )
