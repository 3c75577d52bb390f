"""Exception returns are followed or end their path, checked in every calling context (rule 49).

Extraction follows an exception return that surely continues in the program, function by function.
Here each is analysed again in every context: a followed one goes where edges lead; a path-ending
one does not go to known code of the image, unless its restored status word is known to select User
mode or, where the platform ends paths, to unmask interrupts. Most targets are unknown, because they
are the interrupted code: an assumption says that these leave the kernel.
"""

from __future__ import annotations

from collections.abc import Set

from quoll.abstract_domain.resumption import (
    STATUSES,
    all_are,
    few,
    leaves_kernel,
    resumed_code,
    unmasks,
)
from quoll.arm.insn import ControlFlow
from quoll.errors import ControlFlowError
from quoll.facts.guidance import PathEndFact, ReturnsEndFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import ValueResults

__all__ = ["refuse_returns_to_code"]


def refuse_returns_to_code(
    graph: Supergraph, image: Image, values: ValueResults, facts: LocatedFacts, exits: Set[int]
) -> None:
    """Raise ControlFlowError for an exception return to known code that may run in the kernel.

    Exempt are returns that edges follow, and returns where a fact ends the path. At ``exits``, from
    the platform or from a fact about all exception returns, it is an error only if the status is
    known and may mask interrupts.
    """
    everywhere = any(facts.of(ReturnsEndFact))
    stated = dict(facts.addressed(PathEndFact))
    for index, node in enumerate(graph.nodes):
        last = node.block.last
        if last.flow is not ControlFlow.EXCEPTION_RETURN or last.addr in stated:
            continue
        found = values.restored(index)
        if found is None:
            continue
        target, status = found
        if not node.block.exits:
            _check_followed(graph, image, index, target, status)
            continue
        if all_are(status, leaves_kernel) or (
            (everywhere or last.addr in exits)
            and (status.size > STATUSES or all_are(status, unmasks))
        ):
            continue
        code = [w for w in few(target) if image.is_executable(w & ~1)]
        if code:
            raise ControlFlowError(
                f"{last.text} goes on at {image.place(code[0] & ~1)}, which is code of this "
                f"program, with {_named(status)}, which may not leave the kernel: the path goes "
                "on there",
                where=image.place(last.addr),
                hint="write the jump as a branch, or end the path there: path must end at "
                "{last.addr:#x}",
            )


def _check_followed(
    graph: Supergraph, image: Image, index: int, target: ValueSet, status: ValueSet
) -> None:
    """Raise ControlFlowError where an exception return goes where no edge of ``index`` leads."""
    last = graph.nodes[index].block.last
    edges = (graph.edges[edge] for edge in graph.successors[index])
    followed = {graph.nodes[edge.dst].block.addr for edge in edges}
    followed |= set(graph.left_out.get(index, ()))
    code = resumed_code(image, target, status)
    if code is None or not code <= followed:
        raise ControlFlowError(
            f"{last.text} goes on at known code with a known status word, as its function alone "
            f"tells, but with {_named(status)} at {target} where callers and callees are known",
            where=image.place(last.addr),
            hint=f"state that the path ends there, if it does: path must end at {last.addr:#x}",
        )


def _named(status: ValueSet) -> str:
    exact = status.exact
    return "an unknown status word" if exact is None else f"the status word {exact:#x}"
