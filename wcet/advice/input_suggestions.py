"""Suggestions about the machine and memory, for which the whole entry is analysed again.

Lines about memory are tried as facts, open choices of the platform as options.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cache.reference import Reference, ReferenceKind
from quoll.errors import WcetError
from quoll.facts.anchors import anchored
from quoll.facts.memory_facts import PointsIntoFact, UnknownPointsIntoFact
from quoll.facts.read import Facts
from quoll.image.memory_map import Cacheability, RegionKind
from quoll.inlining.sharing import NEVER
from quoll.inlining.vivu import VivuSettings
from quoll.preemption.segments import undivided
from quoll.printable import printable
from wcet.advice.suggestion import Suggestion
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import AnalysisTarget, classified, contexts
from wcet.analysis.preparation import valued
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.platforms.outside import outside_map

__all__ = ["of_inputs"]

PAGE = 4096  # bytes
DATA_KINDS = (ReferenceKind.LOAD, ReferenceKind.STORE)
DATA = "advised_data"
STACK = "advised_stack"
STACK_TOP = re.compile(r"stack.*(top|end|base|limit)|(top|end|base|limit).*stack", re.IGNORECASE)
STACK_ALIGNED = 8  # bytes, by the procedure call standard
MOST_STACKS = 4  # stacks tried
STACK_ROOM = 1 << 12  # bytes below an example for sp
MOST_ACCESSES = 3
MOST_CONTEXTS = 20_000  # of an entry that is tried without summaries
SP = 13
IN_DATA = (
    "the objects that computed addresses lead to are there and nowhere else, and cached; name the "
    "end of RAM instead if objects lie behind, the start of stacks if pointers lead there"
)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Lines of facts or an option, the options with them, and their condition."""

    line: str
    options: AnalysisOptions
    facts: str
    condition: str
    now: str


def of_inputs(
    result: AnalysisResult,
    entry: EntryResult,
    options: AnalysisOptions,
    progress: Callable[[str], None],
) -> Iterator[Suggestion]:
    """Each suggestion that lowers the bound; a failed analysis gives none."""
    for trial in _trials(result, entry, options):
        progress(trial.line.partition("\n")[0])
        with tempfile.TemporaryDirectory(prefix="wcet-advise-") as folder:
            options_tried = replace(trial.options, entries=options.entries)
            if trial.facts:
                file = Path(folder, "advised.facts")
                file.write_text(trial.facts)
                options_tried = replace(options_tried, facts=(*options_tried.facts, file))
            try:
                found = analyse(result.kernel, options_tried, SilentStageLog())
            except WcetError:
                continue
        other = found.entries.get(entry.name)
        if other is not None and not other.parametric:
            saves = entry.cycles - other.cycles
            yield Suggestion(
                trial.line, saves, trial.condition, trial.now, is_option=not trial.facts
            )


def _trials(
    result: AnalysisResult, entry: EntryResult, options: AnalysisOptions
) -> Iterator[_Trial]:
    run = AnalysisRun.begin(result.kernel, options, SilentStageLog())
    address = run.entries[entry.name]
    found = valued(AnalysisTarget(run, entry.name, address))
    classes = classified(found, undivided(found.graph))
    accesses = [
        (node.block.insns[reference.insn].addr, reference)
        for node, references in zip(found.graph.nodes, classes.references, strict=True)
        for reference in references
        if reference.kind in DATA_KINDS
    ]
    yield from _of_outside(result, options)
    yield from _of_devices(result, options, run, accesses)
    yield from _of_stack(result, entry, options, run)
    yield from _of_memory(result, options, run.facts)
    yield from _of_accesses(result, entry, options, run.facts, accesses)
    platform = result.platform
    inlined = contexts(run, address) if entry.summaries else 0
    if 0 < inlined <= MOST_CONTEXTS:
        yield _Trial(
            "--share never",
            replace(options, summary_settings=NEVER),
            "",
            f"always: a finer analysis of the same program, in {inlined:,} contexts",
            f"{len(entry.summaries)} functions are charged their worst call at each call, for any "
            "arguments",
        )
    if not options.vivu.unroll:
        yield _Trial(
            "--unroll",
            replace(options, vivu=VivuSettings(unroll=True)),
            "",
            "always: a finer analysis of the same program",
            "the first iteration of a loop is charged as all others are",
        )
    if platform.hierarchy.l1d.index_sets < platform.hierarchy.l1d.sets:
        yield _Trial(
            "--data-index virtual",
            replace(options, data_index="virtual"),
            "",
            "virtual addresses select the sets of the data cache, or RAM is mapped so that pages "
            "keep their colour: bits of both addresses that select a set are the same",
            "lines of one page offset count as lines of one set, for all pages",
        )
    if platform.hierarchy.l2 is None and platform.l2 is not None:
        yield _Trial(
            "--l2 on",
            replace(options, l2=True),
            "",
            "the kernel runs with the level-2 cache enabled",
            "the level-2 cache is taken to be disabled",
        )
    if platform.timing.tlb is not None:
        yield _Trial(
            "--tlb assumed-resident",
            replace(options, tlb="assumed-resident"),
            "",
            "every translation of the kernel is locked in the TLB",
            "a table walk is charged for each access to another page than the one before",
        )


def _of_outside(result: AnalysisResult, options: AnalysisOptions) -> Iterator[_Trial]:
    """Code and data of the ELF in memory that neither platform nor facts describe."""
    for outside in outside_map(result.image, result.platform.hierarchy.memory):
        yield _Trial(
            outside.fact,
            options,
            f"{outside.fact}\n",
            "this is cached RAM, and the MMU is off or all page tables map it alike",
            f"{printable(', '.join(outside.sections))}: every access there is charged as uncached",
        )


def _of_devices(
    result: AnalysisResult,
    options: AnalysisOptions,
    run: AnalysisRun,
    accesses: Sequence[tuple[int, Reference]],
) -> Iterator[_Trial]:
    """Pages of known addresses that neither platform nor facts describe, nor the ELF fills."""
    memory = run.platform.hierarchy.memory
    pages = {
        reference.low // PAGE * PAGE
        for _, reference in accesses
        if reference.low is not None
        and reference.low == reference.high
        and memory.cacheability(reference.low, reference.low + 3) is Cacheability.MAYBE
    }
    filled = outside_map(result.image, memory)
    devices = sorted(page for page in pages if not any(one.holds(page) for one in filled))
    if devices:
        lines = "".join(
            f"region device{page:x} from {page:#x} to {page + PAGE - 1:#x} is device\n"
            for page in devices
        )
        yield _Trial(
            lines.rstrip(),
            options,
            lines,
            "these pages are mapped as device memory; remove the lines of other pages",
            "accesses to them may be cached, so that they take a line and its write-back",
        )


def _of_stack(
    result: AnalysisResult, entry: EntryResult, options: AnalysisOptions, run: AnalysisRun
) -> Iterator[_Trial]:
    """Places of sp at the entry: symbols with names for tops of stacks, else the end of RAM.

    Each is tried together with the place of accesses of unknown address: while these may hit any
    line, known lines of the stack save little.
    """
    place, facts = result.function(entry.address), run.facts
    if any(fact.register == SP and fact.place == place for fact in facts.of(PointsIntoFact)):
        return
    image = result.image
    writable = [s for s in image.sections if s.writable and s.size]
    tops: dict[int, str] = {}
    for symbol in image.symbols.symbols:
        if not STACK_TOP.search(symbol.name) or symbol.addr % STACK_ALIGNED:
            continue
        if any(s.addr < symbol.addr <= s.addr + s.size for s in writable):
            tops.setdefault(symbol.addr, symbol.name)
    named = {
        address: f"sp is {address:#x}, which is {printable(name)}, whenever the entry is reached"
        for address, name in sorted(tops.items())[:MOST_STACKS]
    }
    for address, condition in (named or _at_end_of_ram(result, run)).items():
        lines = (
            f"region {STACK}{address:x} from {address:#x} to {address:#x} is cached",
            f"register r13 at {place} points into {STACK}{address:x}",
            *_data_lines(result, facts),
        )
        yield _Trial(
            "\n".join(lines),
            options,
            "".join(f"{line}\n" for line in lines),
            condition + (f"; and {IN_DATA}" if len(lines) > 2 else ""),
            "it is not known where the stack is, so that an access to it may be to any line",
        )


def _at_end_of_ram(result: AnalysisResult, run: AnalysisRun) -> dict[int, str]:
    """An example for sp: an address in RAM where the ELF has nothing, with the condition."""
    sections = [s for s in result.image.sections if s.size]
    for region in run.platform.hierarchy.memory.regions:
        top = (region.high + 1) // STACK_ALIGNED * STACK_ALIGNED - STACK_ALIGNED
        used = any(s.addr <= top and top - STACK_ROOM < s.addr + s.size for s in sections)
        held = any(region.low <= s.addr <= region.high for s in sections)
        if region.kind is RegionKind.CACHED and region.fixed and held and not used:
            return {
                top: f"sp is {top:#x} whenever the entry is reached; this is an example, the end "
                f"of {printable(region.name)}: write the address that start-up code and callers "
                "give it"
            }
    return {}


def _of_memory(result: AnalysisResult, options: AnalysisOptions, facts: Facts) -> Iterator[_Trial]:
    """The writable sections as the place of accesses of unknown address, unless facts state it."""
    lines = _data_lines(result, facts)
    if lines:
        yield _Trial(
            "\n".join(lines),
            options,
            "".join(f"{line}\n" for line in lines),
            IN_DATA,
            "an access whose address is not known may go anywhere, uncached memory included",
        )


def _of_accesses(
    result: AnalysisResult,
    entry: EntryResult,
    options: AnalysisOptions,
    facts: Facts,
    accesses: Sequence[tuple[int, Reference]],
) -> Iterator[_Trial]:
    """A trial fact per access of unknown address: stores first, then the most executed.

    Every remaining unknown access still evicts lines, so such a line pays only if few accesses are
    unknown.
    """
    region, *_ = _data_lines(result, facts) or ("",)
    storing = {addr: False for addr, reference in accesses if reference.low is None}
    for addr, reference in accesses:
        if addr in storing:
            storing[addr] |= reference.kind is ReferenceKind.STORE
    runs: dict[int, int] = {}
    for node, count in zip(entry.graph.nodes, entry.solution.nodes, strict=True):
        for insn in node.block.insns if count else ():
            if insn.addr in storing:
                runs[insn.addr] = runs.get(insn.addr, 0) + count

    def rank(addr: int) -> tuple[bool, int, int]:
        return not storing[addr], -runs[addr], addr

    for addr in sorted(runs, key=rank)[:MOST_ACCESSES] if region else ():
        place = anchored(result.image, addr) or f"{addr:#x}"
        lines = (region, f"access at {place} points into {DATA}")
        yield _Trial(
            "\n".join(lines),
            options,
            "".join(f"{line}\n" for line in lines),
            IN_DATA,
            f"{result.image.place(addr)}: {runs[addr]:,} times on the worst path; its address is "
            "not known, so that it may "
            + ("change any word in memory" if storing[addr] else "evict any line of the cache"),
        )


def _data_lines(result: AnalysisResult, facts: Facts) -> tuple[str, ...]:
    """Lines that put accesses of unknown address into data objects; () if facts state the place.

    Objects are symbols with a size in writable sections, which excludes stacks without a size;
    without such symbols, the pages of these sections.
    """
    image = result.image
    sections = [s for s in image.sections if s.writable and s.size]
    if facts.of(UnknownPointsIntoFact) or not sections:
        return ()
    low = min(s.addr for s in sections) // PAGE * PAGE
    high = -(-max(s.addr + s.size for s in sections) // PAGE) * PAGE - 1
    objects = [
        (symbol.addr, symbol.addr + symbol.size - 1)
        for symbol in image.symbols.symbols
        if symbol.size and any(s.addr <= symbol.addr < s.addr + s.size for s in sections)
    ]
    if objects:
        low, high = min(first for first, _ in objects), max(last for _, last in objects)
    return (
        f"region {DATA} from {low:#x} to {high:#x} is cached",
        f"accesses of unknown address point into {DATA}",
    )
