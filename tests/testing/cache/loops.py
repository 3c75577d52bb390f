"""A loop of one block with loads from tables: their classes, and the charges of its entry."""

from __future__ import annotations

from collections.abc import Sequence

from cache.classify import classify
from cache.geometry import CacheHierarchy
from cache.reference import Reference, ReferenceKind
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperLoop, SuperNode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, Program, at, pool
from tests.testing.cache.walks import hierarchy

TABLE = ValueSet(DATA, DATA + 124, 4)  # four lines
ROUNDS = 32


def loads(
    text: str,
    values: Sequence[ValueSet | None],
    rounds: int = ROUNDS,
    caches: CacheHierarchy | None = None,
) -> tuple[list[Reference], list[Reference]]:
    """The loads of a loop of one block, and the charges of its entry for loads."""
    insns = [*pool(text), *pool("beq .\n")]
    body = Block(0, tuple(at(insn, CODE + 4 * i) for i, insn in enumerate(insns)))
    graph = Supergraph(
        (Context(None, None, CODE),), (SuperNode(0, body),), (SuperEdge(0, 0, EdgeKind.TAKEN),),
        ((0,),), ((0,),), 0, (0,), (SuperLoop(0, 0, (), (0,), frozenset([0]), None),),
    )  # fmt: skip
    left = iter(values)
    known = {(0, i): next(left) for i, insn in enumerate(insns) if insn.memory is not None}
    classes = classify(graph, Program(graph, known), caches or hierarchy(0)).counted({0: rounds})
    found = [r for r in classes.references[0] if r.kind is ReferenceKind.LOAD]
    return found, [r for r in classes.start_misses if r.kind is ReferenceKind.LOAD]
