"""What proofs and answers follow from, as hashes: equal keys have equal answers (rule 30).

A proof follows from its model, hints, budget, solver and the code of this package. The answers
for a graph, before facts that count are looked at, follow from the image, the graph, what value
analysis says, the facts about lists, the options, the solver, and the code of this package and of
those before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path

import quoll
from loopbounds.code import KnownValues
from loopbounds.model import Model
from loopbounds.prove import Budget
from loopbounds.terms import Term
from quoll.cfg import Block
from quoll.image import Image
from quoll.supergraph import Supergraph

__all__ = ["graph_key", "model_key", "simple_key", "total_key"]

SPELLED_OUT = ("nodes", "edges", "loops", "successors", "predecessors")  # parts of a graph
REGISTERS = range(15)  # all but the pc


def model_key(model: Model, budget: Budget, solver: Path) -> str:
    """The identity of a question: equal keys have equal answers."""
    hints = [("hint", h) for h in model.hints]
    text = model.smv([(f"{name}{i}", term) for i, (name, term) in enumerate(hints)])
    return _digest(
        [_code_version(Path(__file__).parent), _solver_version(solver), repr(budget), text]
    )


def simple_key(key: str) -> str:
    """The identity of the question of the model with ``key`` as it is, without simpler ones."""
    return _digest([key, "simple"])


def total_key(key: str, trip: Term, outer: int) -> str:
    """The identity of a total over a loop with bound ``outer``; ``key`` is the inner model's."""
    return _digest([key, "total", trip.name, str(outer)])


def graph_key(
    graph: Supergraph,
    image: Image,
    values: KnownValues,
    options: object,
    solver: Path,
) -> str:
    """The identity of a whole graph: equal keys have equal answers for all loops."""
    parts = [
        _code_version(Path(__file__).parent),
        *map(_code_version, _folders()),
        _solver_version(solver),
        image.sha256,
        repr(options),
        repr([(n.context, _block(n.block)) for n in graph.nodes]),
        repr([(e.src, e.dst, e.kind, e.call) for e in graph.edges]),
        repr([_passed(graph, e) for e in range(len(graph.edges))]),
        repr(
            [
                (x.header, x.entries, x.backs, sorted(x.nodes), x.parent, graph.apart(x))
                for x in graph.loops
            ]
        ),
        repr([getattr(graph, f.name) for f in fields(graph) if f.name not in SPELLED_OUT]),
        *(_known(graph, values, node) for node in range(len(graph.nodes))),
    ]
    return _digest(parts)


def _passed(graph: Supergraph, edge: int) -> list[tuple[bool, list[int], bool]]:
    """What is forgotten along an edge."""
    return [(r.preserves, sorted(r.gives_back), r.keeps_mode) for r in graph.passed(edge)]


def _block(block: Block) -> tuple[object, ...]:
    """All of a block, its instructions by their bytes."""
    others = [getattr(block, f.name) for f in fields(block) if f.name not in ("index", "insns")]
    return [(i.addr, i.thumb, i.raw) for i in block.insns], others


def _known(graph: Supergraph, values: KnownValues, node: int) -> str:
    """What value analysis says of a node."""
    insns = graph.nodes[node].block.insns
    accesses = [i for i, insn in enumerate(insns) if insn.memory is not None]
    return repr(
        (
            [(values.register(node, r), values.frame_register(node, r)) for r in REGISTERS],
            [(values.access(node, i), values.frame_access(node, i)) for i in accesses],
        )
    )


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _folders() -> list[Path]:
    """Every package folder before this one."""
    return sorted({path.parent for path in Path(quoll.__file__).parent.rglob("*.py")})


@cache
def _code_version(folder: Path) -> str:
    """Of the modules in one folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _solver_version(solver: Path) -> str:
    """Of a solver that is missing: no answer is kept for it."""
    return _digest_of(solver) if solver.is_file() else "missing"


@cache
def _digest_of(solver: Path) -> str:
    return hashlib.sha256(solver.read_bytes()).hexdigest()
