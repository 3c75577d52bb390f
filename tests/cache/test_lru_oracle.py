"""LRU against the exact answer: every concrete state that a small graph can reach.

One set, two or four ways, a handful of lines; accesses that are executed for sure, perhaps, or are
stores. All initial contents are tried, other programs' lines among them. The analysis may never
claim a hit that some state refutes; how often it misses one that all states confirm is measured.
"""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from cache.events import CacheEvent, CacheEvents, FlowOrder
from cache.geometry import CacheGeometry
from cache.lines import AccessedLines
from cache.must import MustAnalysis
from cache.policy import ReplacementPolicy
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder

GRAPHS = 250
FOREIGN = (-1, -2, -3, -4)
Contents = tuple[int, ...]  # the line used last comes first


def random_graph(random: Random) -> tuple[FlowGraph, list[list[CacheEvent]]]:
    """A few nodes, every one reached, with up to three accesses each."""
    count = random.randint(2, 6)
    edges = [(random.randrange(node), node) for node in range(1, count)]
    edges += [
        (random.randrange(count), random.randrange(count)) for _ in range(random.randint(0, 3))
    ]
    edges = sorted(set(edges))
    successors: list[list[int]] = [[] for _ in range(count)]
    for index, (source, _) in enumerate(edges):
        successors[source].append(index)
    flow = FlowGraph(0, [s for s, _ in edges], [t for _, t in edges], successors)
    lines = random.randint(2, 5)
    return flow, [[event(random, lines) for _ in range(random.randint(0, 3))] for _ in range(count)]


def event(random: Random, lines: int) -> CacheEvent:
    target = AccessedLines((random.randrange(lines),))
    choice = random.random()
    return CacheEvent(target, certain=choice < 0.8, store=0.7 < choice < 0.9)


def after(contents: Contents, event: CacheEvent, ways: int) -> set[Contents]:
    """The possible contents after an access."""
    assert event.target is not None
    assert event.target.lines is not None
    (line,) = event.target.lines
    used = (line, *(c for c in contents if c != line))[:ways]
    if event.store and line not in contents:
        used = contents  # does not allocate
    return {used} if event.certain else {used, contents}


def exact(flow: FlowGraph, nodes: list[list[CacheEvent]], ways: int) -> dict[tuple[int, int], bool]:
    """For each access whether it hits in every state that reaches it."""
    every = sorted({e.target.lines[0] for n in nodes for e in n if e.target and e.target.lines})
    start = set(permutations([*every, *FOREIGN[:ways]], ways))
    seen: list[set[Contents]] = [set() for _ in nodes]
    hits: dict[tuple[int, int], bool] = {}
    work = [(0, contents) for contents in start]
    while work:
        node, contents = work.pop()
        if contents in seen[node]:
            continue
        seen[node].add(contents)
        states = {contents}
        for index, access in enumerate(nodes[node]):
            assert access.target is not None
            assert access.target.lines is not None
            here = all(access.target.lines[0] in c for c in states)
            hits[node, index] = hits.get((node, index), True) and here
            states = {new for c in states for new in after(c, access, ways)}
        work += [(flow.targets[e], c) for e in flow.successors[node] for c in states]
    return hits


@pytest.mark.slow("many random programs against an oracle")
def test_lru_is_sound_and_nearly_exact() -> None:
    same = total = hits = missed = 0
    for seed in range(GRAPHS):
        random = Random(seed)
        ways = random.choice([2, 2, 4])
        flow, nodes = random_graph(random)
        order = FlowOrder(flow, WeakOrder.of(flow))
        geometry = CacheGeometry(32 * ways, ways, 32)
        residency = MustAnalysis(
            order,
            geometry,
            ReplacementPolicy.LRU,
            CacheEvents(nodes, [()] * len(flow.sources)),
            lambda edge: {},
        )
        truth = exact(flow, nodes, ways)
        for node, events in enumerate(nodes):
            verdicts = residency.inside(node, events)
            assert verdicts is not None
            for index, verdict in enumerate(verdicts):
                claimed, real = verdict.resident, truth[node, index]
                assert real or not claimed, f"seed {seed}: node {node}, access {index}"
                same += claimed == real
                hits += claimed
                missed += real and not claimed
                total += 1
    print(f"{same} of {total} as the exact answer; {hits} hits claimed, {missed} not seen")
    assert hits > total // 6
    assert same > 0.97 * total


@pytest.mark.parametrize("policy", list(ReplacementPolicy))
def test_known_effects_are_the_ones_of_each_event(policy: ReplacementPolicy) -> None:
    """Numbered lines read and change their sets only: in any contents the effect is the same."""
    reused = 0
    for seed in range(GRAPHS):
        random = Random(seed)
        flow, _ = random_graph(random)
        geometry = CacheGeometry(32 * 4 * 2, 2, 32)
        lists = [[any_event(random) for _ in range(random.randint(0, 3))] for _ in range(3)]
        nodes = [random.choice(lists) for _ in flow.successors]
        order = FlowOrder(flow, WeakOrder.of(flow))
        events = CacheEvents(nodes, [()] * len(flow.sources))
        found = MustAnalysis(order, geometry, policy, events, lambda edge: {})
        for state in [s for s in found.states if s is not None]:
            for of_node in lists:
                known, plain = found.after(state, of_node), found.applied(state, of_node)
                assert known == plain, f"seed {seed}"
                reused += len(of_node) > 0
    assert reused > GRAPHS


def any_event(random: Random) -> CacheEvent:
    """An access to one or more numbered lines, to any line, or an operation."""
    kind = random.random()
    if kind < 0.1:
        return CacheEvent(None, forget=kind < 0.05, drop=True)
    lines = tuple(sorted(random.sample(range(12), random.choice([1, 1, 1, 2]))))
    return CacheEvent(
        AccessedLines(None if kind < 0.15 else lines),
        certain=random.random() < 0.7,
        pays=random.random() < 0.6,
        first=random.random() < 0.2,
        store=random.random() < 0.2,
        vacates=random.random() < 0.1,
    )
