"""What proofs and answers follow from, as hashes: equal keys have equal answers (rules 30, 31).

A proof follows from its model, budget, the solver of the search, the checker and the code that
proves. The answers for a graph, before facts that count are looked at, follow from the image, the
graph, what value analysis says, the facts about lists, the options, the same solvers, and the code
of this package and of those before it. The versions of Python and of all packages are in every key.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from loopbounds.budgets.budget import Budget
from loopbounds.slicing.code import KnownValues
from loopbounds.smt.checker import solver_version
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel
from quoll.arm.insn import Insn
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.kept.identity import LeftOut, key_of
from quoll.kept.versions import versions
from quoll.words.strided_interval import ValueSet

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
        if field not in ("addr", "raw", "thumb")
    }
}


def model_key(model: LoopModel, budget: Budget, checker: Checker) -> str:
    """The identity of a question: equal keys have equal answers."""
    solvers = solver_version(), *checker.identity
    return key_of("proof", model, budget, solvers, versions(*PROVING), left_out=LEFT_OUT)


def simple_key(key: str) -> str:
    """The identity of the question of the model with ``key`` as it is, without simpler ones."""
    return key_of("simple", key)


def total_key(key: str, trip: Term, outer: int) -> str:
    """The identity of a total over a loop with bound ``outer``; ``key`` is the inner model's."""
    return key_of("total", key, trip, outer, left_out=LEFT_OUT)


def graph_key(identity: str, options: object, checker: Checker) -> str:
    """Of the answers for a graph with that identity: equal keys have equal ones for all loops."""
    solvers = solver_version(), *checker.identity
    return key_of("answers", identity, options, solvers, versions(*PROVING))


def graph_identity(graph: Supergraph, image: Image, values: KnownValues) -> str:
    """The identity of a graph of an image, and of what value analysis says of it."""
    numbers: dict[ValueSet | None, int] = {}  # few are different
    known = array("Q")
    for node in range(len(graph.nodes)):
        known.extend(numbers.setdefault(v, len(numbers)) for v in _known(graph, values, node))
        known.append(values.hands_on_a_stack_address(node))
    parts = graph, image.identity, tuple(numbers), known.tobytes()
    return key_of("graph", *parts, left_out=DECODED)


def _known(graph: Supergraph, values: KnownValues, node: int) -> Iterator[ValueSet | None]:
    """What value analysis says of a node; how much that is follows from the graph."""
    for register in REGISTERS:
        yield values.register(node, register)
        yield values.frame_register(node, register)
    for i, insn in enumerate(graph.nodes[node].block.insns):
        if insn.memory is not None:
            yield values.access(node, i)
            yield values.frame_access(node, i)
