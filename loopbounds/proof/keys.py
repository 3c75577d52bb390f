"""Cache keys of proofs and of the bounds of a graph: equal keys have equal results (rules 30, 31).

A proof depends on its model, the budget, the solver of the search, the checker and the code that
proves. The bounds of a graph, before facts that count are applied, depend on the image, the graph,
its values, the facts about lists, the options, the same solvers, and the code of this package and
of the packages before it. Every key has the versions of Python and of all packages.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from loopbounds.budgets.budget import Budget
from loopbounds.slicing.code import KnownValues
from loopbounds.smt.smt_checker import solver_version
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel
from quoll.arm.insn import Insn
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet
from quoll.results.cache_key import LeftOut, key_of
from quoll.results.versions import versions

__all__ = ["graph_identity", "graph_key", "model_key", "simple_key", "total_key"]

REGISTERS = range(15)  # all but the pc
PROVING = ("quoll", "loopbounds")
LEFT_OUT: LeftOut = {
    "loopbounds.terms.term.Term": {"serial": "the order in which a process happens to make terms"}
}

DECODED: LeftOut = {
    "quoll.arm.insn.Insn": {
        field: "it follows from the image, of which everything is in the key"
        for field in Insn._fields
        if field not in ("addr", "raw", "thumb", "remainder")
    }
}


def model_key(model: LoopModel, budget: Budget, checker: Checker) -> str:
    """The key of the proof for a model."""
    solvers = solver_version(), *checker.identity
    return key_of("proof", model, budget, solvers, versions(*PROVING), left_out=LEFT_OUT)


def simple_key(key: str) -> str:
    """The key of the proof for the model with ``key`` itself, without a simpler model first."""
    return key_of("simple", key)


def total_key(key: str, trip: Term, outer: int) -> str:
    """The key of a total over a loop with bound ``outer``; ``key`` is the inner model's."""
    return key_of("total", key, trip, outer, left_out=LEFT_OUT)


def graph_key(identity: str, options: object, checker: Checker) -> str:
    """The key of the bounds of the graph with this identity."""
    solvers = solver_version(), *checker.identity
    return key_of("bounds", identity, options, solvers, versions(*PROVING))


def graph_identity(graph: Supergraph, image: Image, values: KnownValues) -> str:
    """The hash of a graph, of its image and of its values."""
    numbers: dict[ValueSet | None, int] = {}  # few sets are distinct
    known = array("Q")
    for node in range(len(graph.nodes)):
        known.extend(numbers.setdefault(v, len(numbers)) for v in _known(graph, values, node))
        known.append(values.hands_on_a_stack_address(node))
    parts = graph, image.identity, tuple(numbers), known.tobytes()
    return key_of("graph", *parts, left_out=DECODED)


def _known(graph: Supergraph, values: KnownValues, node: int) -> Iterator[ValueSet | None]:
    """The values of a node; their number depends on the graph alone."""
    for register in REGISTERS:
        yield values.register(node, register)
        yield values.frame_register(node, register)
    for i, insn in enumerate(graph.nodes[node].block.insns):
        if insn.memory is not None:
            yield values.access(node, i)
            yield values.frame_access(node, i)
