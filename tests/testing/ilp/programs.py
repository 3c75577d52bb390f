"""Random small programs, expanded by the real virtual inlining, with costs, bounds and facts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

from ilp.constraints.constraint import Constraint, resolve_constraints
from loopbounds.proof.bound import LoopBound
from pipeline.costs import CallOption, CostCause, Costs, LimitedCall, WriteBackPool
from quoll.arm.insn import Condition, ControlFlow, Insn, ShiftKind
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind, Program
from quoll.facts.count_facts import AtMostFact, ConflictFact, ConsistentFact
from quoll.facts.fact import Fact, FactSource
from quoll.facts.fact_places import FactPlace
from quoll.facts.guidance import RequireFact
from quoll.facts.linear import LinearFact
from quoll.facts.located import LocatedFacts
from quoll.facts.read import Facts
from quoll.inlining.expand import expand, without_edges
from quoll.inlining.supergraph import Supergraph

__all__ = [
    "Case",
    "FunctionDraft",
    "expanded",
    "insn",
    "located_among",
    "loop_bounds",
    "random_case",
]


def insn(addr: int, flow: ControlFlow = ControlFlow.NEXT, cond: Condition = Condition.AL) -> Insn:
    """An instruction of which only the place, the condition and the effect on control matter."""
    empty: frozenset[int] = frozenset()
    return Insn(
        addr, bytes(4), False, "op", "op", cond, flow, None, False, False, False, empty, empty,
        ShiftKind.NONE, None, (),
    )  # fmt: skip


@dataclass
class FunctionDraft:
    """One function while it grows. Blocks are one instruction long, 0x10 bytes apart.

    ``flows[b]`` is the flow of the instruction; ``nest[b]`` the headers around block b.
    """

    entry: int
    edges: list[tuple[int, int, EdgeKind]] = field(default_factory=list)
    flows: list[ControlFlow] = field(default_factory=list)
    calls: dict[int, tuple[int, ...]] = field(default_factory=dict)
    tails: set[int] = field(default_factory=set)
    returns: set[int] = field(default_factory=set)
    exits: set[int] = field(default_factory=set)
    nest: list[frozenset[int]] = field(default_factory=list)
    around: frozenset[int] = frozenset()

    def block(self, flow: ControlFlow = ControlFlow.NEXT) -> int:
        """A new block."""
        self.flows.append(flow)
        self.nest.append(self.around)
        return len(self.flows) - 1

    def edge(self, src: int, dst: int, kind: EdgeKind = EdgeKind.TAKEN) -> None:
        """A new edge, once."""
        if (src, dst, kind) not in self.edges:
            self.edges.append((src, dst, kind))

    def cfg(self) -> Cfg:
        """The function."""
        blocks = tuple(
            Block(
                b,
                (insn(self.entry + 0x10 * b, flow),),
                calls=self.calls.get(b, ()),
                tail=b in self.tails,
                returns=b in self.returns,
                exits=b in self.exits,
            )
            for b, flow in enumerate(self.flows)
        )
        edges = tuple(Edge(*e) for e in self.edges)
        return Cfg(self.entry, f"f{self.entry:x}", False, blocks, edges, bool(self.returns))


def expanded(functions: list[FunctionDraft]) -> Supergraph:
    """Virtual inlining from the first function."""
    program = Program({f.entry: f.cfg() for f in functions}, (functions[0].entry,))
    return expand(program, functions[0].entry, SimpleNamespace(place=hex))  # type: ignore[arg-type]


class FunctionWriter:
    """Writes one function from random statements."""

    def __init__(self, rng: random.Random, draft: FunctionDraft, callees: list[int]) -> None:
        self.rng, self.draft, self.callees = rng, draft, callees
        self.room = rng.randint(2, 7)  # statements left

    def write(self, *, root: bool) -> None:
        """The whole body."""
        d = self.draft
        first = d.block()
        last = self.sequence(first)
        if last is not None:
            if self.callees and not root and self.rng.random() < 0.1:
                d.calls[last], d.flows[last] = (self.rng.choice(self.callees),), ControlFlow.JUMP
                d.tails.add(last)
            else:
                d.returns.add(last)
        plain = [b for b, f in enumerate(d.flows) if b not in d.calls and f is ControlFlow.NEXT]
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            src, dst = self.rng.choice(plain), self.rng.randrange(len(d.flows))
            if src < dst and d.nest[dst] <= d.nest[src] and src not in d.returns:
                d.edge(src, dst)

    def sequence(self, at: int) -> int | None:
        """Statements after block ``at``; the last block, or None if control does not get there."""
        for _ in range(self.rng.randint(1, 3)):
            if self.room <= 0:
                break
            self.room -= 1
            kinds = (self._if, self._if, self._loop, self._while, self._call, self._call)
            after = self.rng.choice((*kinds, self._leave))(at)
            if after is None:
                return None
            at = after
        return at

    def next(self, src: int) -> int:
        """A new block after ``src``."""
        block = self.draft.block()
        self.draft.edge(src, block, EdgeKind.FALLTHROUGH)
        return block

    def _if(self, at: int) -> int | None:
        ends = [self.sequence(self.next(at)), at if self.rng.random() < 0.4 else None]
        if ends[1] is None:
            ends[1] = self.sequence(self.next(at))
        live = [end for end in ends if end is not None]
        if not live:
            return None
        join = self.draft.block()
        for end in live:
            self.draft.edge(end, join)
        return join

    def _loop(self, at: int) -> int | None:
        """do { body } while (...)"""
        d, outer = self.draft, self.draft.around
        header = len(d.flows)
        d.around = outer | {header}
        end = self.sequence(self.next(at))
        d.around = outer
        if end is None:
            return None
        d.edge(end, header)
        return self.next(end)

    def _while(self, at: int) -> int | None:
        d, outer = self.draft, self.draft.around
        header = len(d.flows)
        d.around = outer | {header}
        self.next(at)
        end = self.sequence(self.next(header))
        d.around = outer
        if end is not None:
            d.edge(end, header)
        return self.next(header)

    def _call(self, at: int) -> int:
        d = self.draft
        if not self.callees:
            return self.next(at)
        call = self.next(at)
        d.flows[call] = ControlFlow.CALL
        number = 2 if self.rng.random() < 0.15 else 1
        d.calls[call] = tuple(dict.fromkeys(self.rng.choices(self.callees, k=number)))
        after = d.block()
        d.edge(call, after, EdgeKind.ACROSS)
        return after

    def _leave(self, at: int) -> int:
        """if (...) the path ends, or the function returns"""
        d = self.draft
        out = self.next(at)
        kind = self.rng.random()
        if kind < 0.4:
            d.returns.add(out)
        elif kind < 0.7:
            d.exits.add(out)
            d.flows[out] = ControlFlow.EXCEPTION_RETURN
        else:
            d.exits.add(out)  # a named end point
            d.flows[out] = ControlFlow.TRAP
        return self.next(at)


@dataclass(frozen=True)
class Case:
    """A program with everything that the integer program is built from."""

    graph: Supergraph
    costs: Costs
    bounds: tuple[int, ...]
    constraints: tuple[Constraint, ...]

    @property
    def loop_bounds(self) -> tuple[LoopBound, ...]:
        """The bounds as the stage before gives them."""
        return loop_bounds(self.bounds)


def loop_bounds(bounds: tuple[int, ...]) -> tuple[LoopBound, ...]:
    """One proved bound per loop."""
    return tuple(LoopBound(i, b, True, "nusmv", None, None, 0.0) for i, b in enumerate(bounds))


# How often each form of fact is drawn.
PAIRS = ("conflict", "conflict", "consistent", "consistent", "most", "total")
FORMS = (*PAIRS, "linear", "linear", "require")


def random_case(seed: int, forms: Sequence[str] = FORMS) -> Case:
    """A case; some start in the middle, some recur. Raises ControlFlowError if none can end."""
    rng = random.Random(seed)
    drafts = [FunctionDraft(0x1000 * (i + 1)) for i in range(rng.choice((1, 2, 2, 3, 3, 4)))]
    for i, draft in enumerate(drafts):
        callees = [d.entry for d in drafts[i + 1 :]]
        FunctionWriter(rng, draft, callees).write(root=i == 0)
    graph = expanded(drafts)
    if rng.random() < 0.12:
        graph = without_edges(replace(graph, entry=rng.randrange(len(graph.nodes))), [])
    if rng.random() < 0.15:
        graph = as_recursion(rng, graph)
    by_header = {
        addr: rng.choice((1, 2, 2, 3))
        for addr in sorted({graph.nodes[loop.header].block.addr for loop in graph.loops})
    }
    bounds = tuple(by_header[graph.nodes[loop.header].block.addr] for loop in graph.loops)
    costs = Costs(
        tuple(causes(rng, 9) for _ in graph.nodes), tuple(causes(rng, 3) for _ in graph.edges)
    )
    constraints = random_constraints(rng, graph, forms)
    costs = with_pool(rng, costs) if rng.random() < 0.3 else costs
    return Case(graph, with_limited(rng, costs, graph, constraints), bounds, constraints)


def with_limited(
    rng: random.Random, costs: Costs, graph: Supergraph, constraints: Sequence[Constraint]
) -> Costs:
    """Costs with calls of several options along some edges, if a fact limits a total."""
    totals = [c.fact.source for c in constraints if c.function is None and counts_total(c)]
    if not totals:
        return costs
    limited, edges = [], list(costs.edges)
    for e in range(len(edges)):
        if rng.random() < 0.3:
            charged, *options = sorted(
                (random_option(rng, totals) for _ in range(rng.randint(1, 3))),
                key=lambda option: -option.cycles,
            )
            limited.append(LimitedCall(graph.edges[e].src, e, charged, tuple(options)))
            at = CostCause.OTHER
            edges[e] = (*edges[e][:at], edges[e][at] + charged.cycles, *edges[e][at + 1 :])
    return replace(costs, edges=tuple(edges), limited=tuple(limited))


def counts_total(constraint: Constraint) -> bool:
    """Whether a constraint limits the executions of a place on the whole path."""
    return isinstance(constraint.fact, AtMostFact)


def random_option(rng: random.Random, totals: Sequence[FactSource]) -> CallOption:
    """An option that executes some of the places."""
    counts = {source: rng.randint(1, 2) for source in totals if rng.random() < 0.5}
    return CallOption(0, None, rng.randint(0, 20), tuple(counts.items()))


def with_pool(rng: random.Random, costs: Costs) -> Costs:
    """Costs with write-backs in some nodes, and stores in others."""
    size, cycles = len(costs.nodes), rng.randint(1, 5)
    charged = {n: rng.randint(1, 3) for n in range(size) if rng.random() < 0.3}
    maintained, evicted = ({n: k for n, k in charged.items() if n % 2 == odd} for odd in (0, 1))
    dirtied = {n: rng.randint(1, 3) for n in range(size) if rng.random() < 0.2}
    restarts = frozenset(e for e in range(len(costs.edges)) if rng.random() < 0.05)
    pool = WriteBackPool(cycles, rng.randint(0, 3), 3, maintained, evicted, dirtied, restarts)
    nodes = [list(causes) for causes in costs.nodes]
    for cause, of_cause in ((CostCause.OTHER, maintained), (CostCause.LOAD_MISS, evicted)):
        for n, count in of_cause.items():
            nodes[n][cause] += cycles * count
    return replace(costs, nodes=tuple(map(tuple, nodes)), pool=pool)


def as_recursion(rng: random.Random, graph: Supergraph) -> Supergraph:
    """The graph with the contexts of one function said to be activations of another."""
    first, second = (c.function for c in rng.choices(graph.contexts, k=2))
    contexts = tuple(
        replace(c, function=first) if c.function == second else c for c in graph.contexts
    )
    return replace(graph, contexts=contexts)


def causes(rng: random.Random, most: int) -> tuple[int, ...]:
    """Cycles by cause; zero for most causes."""
    cycles = [0] * len(CostCause)
    cycles[rng.randrange(len(CostCause))] = rng.randint(0, most)
    cycles[rng.randrange(len(CostCause))] += rng.choice((0, 0, 1))
    return tuple(cycles)


def random_constraints(
    rng: random.Random, graph: Supergraph, forms: Sequence[str]
) -> tuple[Constraint, ...]:
    """None to three facts of random form about random places and functions of the graph."""
    contexts = sorted({node.context for node in graph.nodes})
    facts: list[Fact] = []
    lines: dict[str, tuple[int, ...]] = {}
    for number in range(rng.choice((0, 1, 1, 1, 2, 2, 3))):
        context = graph.contexts[rng.choice(contexts)]
        parent = None if context.parent is None else graph.contexts[context.parent].function
        function = hex(context.function)
        caller = hex(parent) if parent and rng.random() < 0.2 else None
        below = [
            n.block.addr
            for n in graph.nodes
            if any(c.function == context.function for c in graph.call_string(n.context))
        ]
        source = FactSource("random", number, "")
        a, b = (place(rng, below, lines) for _ in range(2))
        form = rng.choice(forms)
        if form == "conflict":
            facts.append(ConflictFact(source, a, b, function, caller))
        elif form == "consistent":
            facts.append(ConsistentFact(source, a, b, function, caller))
        elif form == "most":
            facts.append(AtMostFact(source, a, rng.randint(0, 2), function, caller))
        elif form == "linear":
            scoped = (function, caller) if rng.random() < 0.7 else (None, None)
            facts.append(random_linear(rng, source, (a, b), *scoped))
        elif form == "require":
            facts.append(RequireFact(source, a))
        else:
            facts.append(AtMostFact(source, a, rng.randint(0, 4), None))
    pairs = (ConflictFact, ConsistentFact)
    kept = [f for f in facts if not isinstance(f, pairs) or not overlap(f, lines)]
    return resolve_constraints(graph, located_among(Facts(tuple(kept)), lines))


def random_linear(
    rng: random.Random,
    source: FactSource,
    places: tuple[str, str],
    function: str | None,
    caller: str | None,
) -> LinearFact:
    """One or two counts with small factors; most often satisfied by executing nothing."""
    chosen = places if rng.random() < 0.8 else places[:1]
    terms = tuple((rng.choice((-2, -1, 1, 1, 2, 3)), place) for place in chosen)
    relation, least = rng.choice((("<=", 0), ("<=", 0), ("<=", -1), (">=", -3), ("=", -1)))
    number = rng.randint(least, least + 4)
    return LinearFact(source, terms, relation, number, function, caller)


def place(rng: random.Random, addresses: list[int], lines: dict[str, tuple[int, ...]]) -> str:
    """A line of one or two of the addresses."""
    chosen = tuple(sorted(set(rng.choices(addresses, k=rng.choice((1, 1, 1, 2))))))
    name = f"l.c:{len(lines) + 1}"
    lines[name] = chosen
    return name


def overlap(fact: Fact, lines: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the two places of a fact share a block."""
    assert isinstance(fact, (ConflictFact, ConsistentFact))
    return bool(set(lines[fact.a]) & set(lines[fact.b]))


def located_among(facts: Facts, lines: Mapping[str, tuple[int, ...]]) -> LocatedFacts:
    """``facts`` whose places are lines of the table, or addresses."""

    def place(text: str) -> FactPlace:
        addresses = tuple(sorted(lines[text])) if text in lines else (int(text, 16),)
        spans = tuple((addr, addr) for addr in addresses)
        return FactPlace(addresses, addresses, spans, exact=text not in lines)

    names = (text for fact in facts.facts for text in fact.names())
    return LocatedFacts(facts.facts, places={(text, None): place(text) for text in names})
