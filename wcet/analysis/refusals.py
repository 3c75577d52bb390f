"""Errors for code through which no path can be bounded, each naming the place.

refuse_unmodelled  paths without an end (rule 33), instructions that the core lacks (rule 47), and
                   writes of registers that control caches and translation (rule 37)
refuse_unaligned   unaligned accesses, if the platform excludes them
refuse_untimed     instructions without a time, where cycles are counted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cache.maintenance import refused
from pipeline.core import load_core
from pipeline.demand import demand
from quoll.arm.architecture import needed_extension
from quoll.arm.insn import AccessKind, Insn
from quoll.errors import MissingKind, MissingStatement, TimingError
from quoll.image.image import Image
from quoll.inlining.expand import refuse_stops
from quoll.inlining.supergraph import Supergraph
from quoll.value_analysis.value_results import ValueResults
from wcet.platforms.platform_model import Platform
from wcet.platforms.processor import Processor

__all__ = ["instructions", "refuse_unaligned", "refuse_unmodelled", "refuse_untimed"]

WORD = 4  # bytes
NAMED = 4  # further instructions in an error
REPLACED = "function PLACE takes at most {} cycles"
PROVISIONAL = 1_000_000  # cycles: more than every call surely takes, which would be refused


def refuse_unmodelled(
    graph: Supergraph, image: Image, core: Processor, *, force: bool, stops: bool = True
) -> None:
    """Raise a WcetError for code that no command follows.

    ControlFlowError where control may get to code that is on no path (rule 33), and TimingError for
    code that changes the presupposed state of the machine (rule 37), or, unless ``force``, for
    instructions that ``core`` lacks (rule 47). Without ``stops``, the graph is a called function,
    which need not reach an end of paths.
    """
    if stops:
        refuse_stops(graph, image)
    if not force:
        refuse_lacking(graph, image, core)
    refuse_control_writes(graph, image)


def refuse_lacking(graph: Supergraph, image: Image, core: Processor) -> None:
    """Raise TimingError for an instruction that ``core`` lacks (rule 47)."""
    has = core.extensions | core.revisions
    found = {
        addr: (insn, needed)
        for addr, insn in instructions(graph).items()
        if (needed := needed_extension(insn)) is not None and needed not in has
    }
    if not found:
        return
    insns = [insn for insn, _ in found.values()]
    why = {addr: f"{insn.text} needs {needed.value}" for addr, (insn, needed) in found.items()}
    first, needed = next(iter(found.values()))
    raise TimingError(
        f"{first.text} needs {needed.value}, which {core.title} lacks: it takes the undefined "
        f"vector there{also(insns, image)}",
        where=image.place(first.addr),
        hint="choose the board that the binary is for with --platform; if control never gets here: "
        "ignore PLACE; if the core does execute it, --force-core lists that as an assumption",
        missing=bounds_instead(graph, why),
    )


def refuse_control_writes(graph: Supergraph, image: Image) -> None:
    """Raise TimingError for an instruction that may reconfigure the caches or the MMU."""
    insns = instructions(graph)
    found = {
        addr: f"{insn.text} writes {what}: its effect on later code is not modelled"
        for addr, insn in insns.items()
        if (what := refused(insn)) is not None
    }
    if not found:
        return
    first = next(iter(found))
    raise TimingError(
        f"{found[first]}{also([insns[addr] for addr in found], image)}",
        where=image.place(first),
        hint="if the path ends before it: path must end at PLACE; if control never gets here: "
        "ignore PLACE; or state the cycles of its function, which must preserve caches and "
        "translation: function NAME takes at most N cycles",
        missing=bounds_instead(graph, found),
    )


def refuse_unaligned(values: ValueResults, image: Image) -> None:
    """Raise TimingError for an access that value analysis shows to be unaligned."""
    for index, node in enumerate(values.graph.nodes):
        for number, insn in enumerate(node.block.insns):
            memory = insn.memory
            if memory is None or memory.size == 1 or memory.access is AccessKind.PRELOAD:
                continue
            where, size = values.access(index, number), min(memory.size, WORD)
            if where is None or where.stride % size or not where.low % size:
                continue
            raise TimingError(
                f"{insn.text} accesses {where}, which is not aligned to {size} bytes, though the "
                "platform assumes that every access is aligned to its size",
                where=image.place(insn.addr),
                hint="aligned = false under [caches] of the platform file charges such accesses",
            )


def refuse_untimed(graph: Supergraph, image: Image, platform: Platform) -> None:
    """Raise TimingError for all instructions without a timing class, before anything is proved."""
    timing = platform.timing
    core = load_core(timing.core, timing.profile, timing.own_rows)
    insns = instructions(graph)
    found: dict[int, TimingError] = {}
    for addr, insn in insns.items():
        try:
            demand(core, insn, aligned=True, aligned8=False)
        except TimingError as error:
            found[addr] = error
    if not found:
        return
    first = next(iter(found.values()))
    raise TimingError(
        f"{first.message}{also([insns[addr] for addr in found], image)}",
        where=first.where,
        hint=first.hint,
        missing=bounds_instead(graph, {addr: error.message for addr, error in found.items()}),
    )


def instructions(graph: Supergraph) -> dict[int, Insn]:
    """The instructions of ``graph``, by address and in its order."""
    blocks = {id(node.block): node.block for node in graph.nodes}
    found = {insn.addr: insn for block in blocks.values() for insn in block.insns}
    return dict(sorted(found.items()))


def also(insns: Sequence[Insn], image: Image) -> str:
    """The places of ``insns`` after the first one, for the end of a message."""
    _, *others = insns
    named = "".join(f"; also {i.text} at {image.place(i.addr)}" for i in others[:NAMED])
    left = len(others) - NAMED
    return named + (f"; and {left} more" if left > 0 else "")


def bounds_instead(graph: Supergraph, why: Mapping[int, str]) -> list[MissingStatement]:
    """Missing bounds of the functions with the instructions in ``why``, except for the entry."""
    start = graph.contexts[0].function
    found: dict[int, MissingStatement] = {}
    for node in graph.nodes:
        function = graph.contexts[node.context].function
        for insn in node.block.insns:
            if insn.addr in why and function not in (start, *found):
                found[function] = MissingStatement(
                    function,
                    MissingKind.FUNCTIONS,
                    f"{insn.addr:#x}: {why[insn.addr]}",
                    REPLACED.format("N"),
                    REPLACED.format(PROVISIONAL),
                )
    return list(found.values())
