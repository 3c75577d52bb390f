"""Functions that are analysed once for all their calls, where full inlining grows too large.

A function is a *module* when it is called from several contexts, its own inlining has a certain
size, and nothing couples it to its callers: it returns to them, no path ends in it, it switches
neither stack nor mode, and no fact from outside speaks of what is inside. Its bound from unknown
values, caches and pipeline then takes its place in every caller, as a fact that replaces a function
does (rule 2): sound, and looser than inlining, because it knows nothing of its callers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from quoll.arm.status import leaves_mode
from quoll.cfg.call_graph import CallGraph, call_graph
from quoll.cfg.cfg import Block, Cfg, Program
from quoll.facts import Facts, LoopFact
from quoll.facts.applied import Replacement
from quoll.facts.places import find_place
from quoll.image.image import Image

__all__ = ["Modules", "Sharing", "expansion"]


@dataclass(frozen=True, slots=True)
class Sharing:
    """When to share: above ``contexts`` of the full inlining; modules have ``least`` or more."""

    contexts: int = 5_000
    least: int = 24


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
    """A fact: ``scope`` are the functions whose invocations it is about (none: the whole path),
    ``places`` the functions of its places."""

    scope: frozenset[int]
    places: frozenset[int]


@dataclass(slots=True)
class Modules:
    """Chooses modules, callees before callers, while ``program`` takes them in."""

    program: Program
    entry: int
    image: Image
    facts: Facts
    sharing: Sharing
    sizes: dict[int, int] = field(default_factory=dict)  # contexts of a call, modules left out
    inside: dict[int, frozenset[int]] = field(default_factory=dict)  # functions below, itself too
    replaced: list[int] = field(default_factory=list)

    def candidates(self) -> Iterator[int]:
        """The functions to be analysed on their own, one after another.

        Each is answered with ``replace_by`` before the next one is drawn, or stays inlined.
        """
        graph = call_graph(self.program)
        instances = expansion(graph, self.entry)
        if instances.total() <= self.sharing.contexts:
            return
        self.inside = _inside(graph)
        coupled = list(self._coupled())
        for function in graph.order:
            callees = [call.callee for call in graph.calls[function]]
            self.sizes[function] = 1 + sum(self.sizes.get(callee, 1) for callee in callees)
            if (
                function != self.entry
                and instances[function] > 1
                and self.sizes[function] >= self.sharing.least
                and self._is_closed(function, coupled)
            ):
                yield function

    def replace_by(self, function: int, replacement: Replacement) -> None:
        """Put ``replacement`` in the place of ``function`` in all its callers."""
        functions = {
            entry: replace(cfg, blocks=tuple(_without_call(b, function) for b in cfg.blocks))
            for entry, cfg in self.program.functions.items()
        }
        guidance = self.program.guidance
        self.program = replace(
            self.program,
            functions=functions,
            guidance=replace(guidance, replaced={**guidance.replaced, function: replacement}),
        )
        self.sizes[function] = 0
        self.replaced.append(function)

    def _is_closed(self, function: int, coupled: Iterable[_Coupling]) -> bool:
        inside = self.inside[function]
        if not self.program.functions[function].returns:
            return False
        if any(_leaves(self.program.functions[f]) for f in inside):
            return False
        for fact in coupled:
            meant = not fact.scope or any(function in self.inside.get(g, ()) for g in fact.scope)
            if meant and not (fact.scope and fact.scope <= inside) and fact.places & inside:
                return False
        return True

    def _coupled(self) -> Iterator[_Coupling]:
        owner = {
            insn.addr: entry
            for entry, cfg in self.program.functions.items()
            for block in cfg.blocks
            for insn in block.insns
        }
        for fact in self.facts.facts:
            if isinstance(fact, LoopFact):
                continue
            places = {
                owner[address]
                for text in fact.places()
                for address in find_place(self.image, text, fact.source).addresses
                if address in owner
            }
            scope = {
                address & ~1
                for text in fact.functions()
                for address in find_place(self.image, text, fact.source).addresses
            }
            yield _Coupling(frozenset(scope), frozenset(places))


def _inside(graph: CallGraph) -> dict[int, frozenset[int]]:
    """The functions that each function may call in the end, itself among them."""
    inside = {function: frozenset({function}) for function in graph.order}
    changed = True
    while changed:  # a second time only where there is recursion
        changed = False
        for function in graph.order:
            found = inside[function].union(*(inside[c.callee] for c in graph.calls[function]))
            if found != inside[function]:
                inside[function], changed = found, True
    return inside


def _leaves(cfg: Cfg) -> bool:
    """Whether a path may end in the function, or it changes the mode or the stack."""
    return any(block.exits or any(map(leaves_mode, block.insns)) for block in cfg.blocks)


def _without_call(block: Block, function: int) -> Block:
    if function not in block.calls:
        return block
    return replace(
        block,
        calls=tuple(c for c in block.calls if c != function),
        passes=(*block.passes, function),
        returns=block.returns or block.tail,
    )
