"""A result as text: bounds first, then the worst paths, then the assumptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import inf

from ilp.paths.outline import PathOutline, outline
from pipeline.costs import CostCause
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.fact_evidence import FactStatus
from wcet.analysis.result import AnalysisResult, EntryResult, StartBound
from wcet.reports.proved_text import exclusions_text
from wcet.reports.summary_text import inside_summaries

__all__ = ["TextStyle", "assumptions", "bounds_table", "to_text"]

CAUSES = {
    CostCause.ISSUE: "issue",
    CostCause.STALL: "stalls",
    CostCause.BRANCH: "branches",
    CostCause.FETCH_MISS: "I-misses",
    CostCause.LOAD_MISS: "D-misses",
    CostCause.STORE: "stores",
    CostCause.OTHER: "entry, exit",
    CostCause.TLB: "TLB",
}
OTHER = "other"  # the column of hidden causes
COLUMN = 13  # width of a column of cycles
NAME = 16  # width of the column of entries
CYCLES = 10  # width of a column that starts a row
BRIEF_SHARE = 0.01  # functions below this share of the bound are summed up in a brief path
BRIEF_BLOCKS = 12  # costliest blocks shown in a brief path
WAITS = 10  # longest paths with a pending interrupt that are shown
DEEPEST = 40  # columns of indentation


@dataclass(frozen=True, slots=True)
class TextStyle:
    """Print settings: colours, extent of paths, stage figures.

    ``columns``: the width of tables; None for a file or pipe, which get all columns.
    """

    color: bool
    paths: str  # none, brief, full
    stats: bool
    columns: int | None = None

    def bold(self, text: str) -> str:
        """``text`` as a heading or bound."""
        return f"\x1b[1m{text}\x1b[0m" if self.color else text

    def dim(self, text: str) -> str:
        """``text`` as a detail."""
        return f"\x1b[2m{text}\x1b[0m" if self.color else text


def to_text(result: AnalysisResult, style: TextStyle) -> str:
    """The whole report."""
    table = "\n".join(bounds_table(result, style, style.columns))
    sections = [heading(result, style), table, *intervals(result)]
    sections += [*latency(result, style), *waits(result, style)]
    if style.paths != "none":
        write = brief_path if style.paths == "brief" else full_path
        for entry in result.entries.values():
            sections.append("\n".join(write(result, entry, style)))
            inside = "\n".join(inside_summaries(result, entry))
            sections += [inside] if inside else []
    sections += [loops(result, style), *fact_labels(result, style), *never_returning(result, style)]
    sections += proved_exclusions(result, style)
    sections += [assumptions(result, style)]
    if style.stats:
        sections.append(stats(result, style))
    return "\n\n".join(sections) + "\n"


def heading(result: AnalysisResult, style: TextStyle) -> str:
    """The kernel, platform and facts of a result."""
    level2 = "L2 on" if result.platform.l2_enabled else "L2 off"
    facts = ", ".join(result.facts_files) or "none"
    return "\n".join(
        (
            f"kernel    {result.kernel}  {style.dim('sha256 ' + result.image.sha256[:16])}",
            f"platform  {style.bold(result.platform.name)}: {result.platform.description}; "
            f"{level2} (chosen because: {result.platform_reason})",
            f"facts     {facts}",
        )
    )


def wide(largest: int, least: int) -> int:
    """The width of a column of numbers up to ``largest``, including a gap."""
    return max(least, len(f"{largest:,}") + 2)


def bounds_table(result: AnalysisResult, style: TextStyle, columns: int | None) -> list[str]:
    """One row per entry: the bound and its cycles by cause, without causes that take none.

    With ``columns``, rows fit: they sum up the least causes, and leave out explanations.
    """
    entries = result.entries
    causes = {name: entry.cycles_by_cause() for name, entry in entries.items()}
    most = {cause: max((of[cause] for of in causes.values()), default=0) for cause in CostCause}
    named = max((NAME, *(len(name) + 1 for name in (*entries, *result.unbounded))))
    largest = max((entry.cycles for entry in entries.values()), default=0)
    first = wide(largest, CYCLES)

    def width(cause: CostCause) -> int:
        if columns is None:
            return wide(largest, COLUMN)
        return wide(most[cause], len(CAUSES[cause]) + 2)

    shown = [cause for cause in CAUSES if most[cause]]
    rest: list[CostCause] = []
    room = inf if columns is None else columns - named - 2 * first
    while shown and sum(map(width, shown)) + (first if rest else 0) > room:
        least = min(shown, key=lambda cause: most[cause])
        shown.remove(least)
        rest.append(least)
    head = f"{'entry':<{named}}{'cycles':>{first}}{'µs':>{first}}"
    head += "".join(f"{CAUSES[cause]:>{width(cause)}}" for cause in shown)
    head += f"{OTHER:>{first}}" if rest else ""
    rows = [style.bold("worst-case execution time"), style.dim(head)]
    for name, entry in entries.items():
        method = "" if columns is not None else f": {entry.solution.method}"
        mark = "" if entry.solution.optimal else f"  (upper bound{method})"
        if entry.parametric:
            text = f"f({', '.join(entry.parametric.names)})".rjust(first)
            function = f"{'f':>{first}}" if columns is not None else style.bold(text)
            end = "" if columns is not None else mark
            rows.append(f"{name:<{named}}{function}  a function, below{end}")
            continue
        bound = f"{entry.cycles:>{first},}{result.microseconds(entry.cycles):>{first},.1f}"
        shares = "".join(f"{causes[name][cause]:>{width(cause)},}" for cause in shown)
        shares += f"{sum(causes[name][cause] for cause in rest):>{first},}" if rest else ""
        if columns is None and len(entry.starts) > 1:
            mark += f"  ({start_text(result, entry, entry.starts[0])})"
        rows.append(f"{name:<{named}}{style.bold(bound)}{shares}{mark}")
    rows += [f"{name:<{named}}{style.bold('none'.rjust(first))}" for name in result.unbounded]
    return [*rows, *functions(result, style)]


def intervals(result: AnalysisResult) -> Iterator[str]:
    """The entries of which an execution is known, each with its interval, as one section."""
    found = [f"{name}: {e.interval}" for name, e in result.entries.items() if e.interval]
    if found:
        yield "\n".join(found)


def functions(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """The bounds that are functions of parameters, and the reasons of entries without a bound."""
    for name, entry in result.entries.items():
        bound = entry.parametric
        if bound is None:
            continue
        why = "" if bound.exact else f"  (upper bound: {bound.reason})"
        yield f"{name}: {style.bold(str(bound))}{why}"
        causes = entry.cycles_by_cause()
        shares = ", ".join(f"{text} {causes[c]:,}" for c, text in CAUSES.items() if causes[c])
        start = entry.starts[0] if len(entry.starts) > 1 else None
        where = f"  ({start_text(result, entry, start)})" if start else ""
        yield (
            f"  {entry.for_what.strip()}: {entry.cycles:,} cycles, "
            f"{result.microseconds(entry.cycles):,.1f} µs: {shares}{where}"
        )
        most: dict[int, int] = {}
        for loop, cycles in bound.per_iteration:
            header = entry.graph.nodes[entry.graph.loops[loop].header].block.addr
            most[header] = max(cycles, most.get(header, 0))
        for header, cycles in most.items():
            yield f"  {cycles:,} cycles per element in the loop {result.image.place(header)}"
    for name, error in result.unbounded.items():
        yield f"{name}: {error}"


def start_text(result: AnalysisResult, entry: EntryResult, start: StartBound) -> str:
    """The start of a bound's paths, if there are several starts (rule 21)."""
    if start.place is None:
        return f"from the entry; {len(entry.starts) - 1} starts at preemption points take less"
    return _place_of(result, entry, start)


def _place_of(result: AnalysisResult, entry: EntryResult, start: StartBound) -> str:
    if start.place is None:
        return "from the entry"
    test = "the test for interrupts at"
    if start.inside is not None:
        test = f"a test for interrupts in {result.function(start.inside)}, called at"
    place = f"{result.image.place(start.place)}{callers(result, entry, start.context)}"
    return f"from just after {test} {place}"


def waits(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """The longest paths on which an interrupt waits, if code tests for interrupts (rule 21)."""
    found = [
        (start.cycles, name, _place_of(result, entry, start))
        for name, entry in result.entries.items()
        for start in (entry.starts if len(entry.starts) > 1 else ())
    ]
    if not found:
        return
    longest = sorted(found, key=lambda one: -one[0])[:WAITS]
    first = wide(longest[0][0], CYCLES)
    rows = [
        style.bold("longest paths with a pending interrupt, to its test or to the end of the path"),
        style.dim(f"{'cycles':>{first}}{'µs':>{first}}  entry: start"),
    ]
    for cycles, name, place in longest:
        rows.append(
            f"{cycles:>{first},}{result.microseconds(cycles):>{first},.1f}  {name}: {place}"
        )
    yield "\n".join(rows)


def latency(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """The worst interrupt latency with its two summands, or the places that unmask interrupts."""
    found = result.latency
    for name, entry in result.entries.items():
        if entry.unmasking:
            yield (
                f"no interrupt latency: {name} may unmask interrupts at "
                f"{', '.join(entry.unmasking)}\n  (if its masked path ends there, state it: path "
                "must end at PLACE, or --end PLACE)"
            )
    if found is None:
        return
    times = f"{found.together} × " if found.together > 1 else ""
    yield (
        style.bold(
            f"worst interrupt latency: {found.cycles:,} cycles, "
            f"{result.microseconds(found.cycles):.1f} µs"
        )
        + f"\n  = longest masked path ({found.longest}: {found.longest_cycles:,}) + {times}"
        f"interrupt path ({found.interrupt_cycles:,})"
        f"{f' + controller ({found.delay:,})' if found.delay else ''}"
    )


def brief_path(result: AnalysisResult, entry: EntryResult, style: TextStyle) -> Iterator[str]:
    """The calls of a worst path as a tree, then the costliest blocks."""
    yield style.bold(f"worst path of {entry.name}{entry.for_what}")
    if entry.path.unrealisable:
        yield f"  {entry.path.unrealisable}"
    if not entry.path.steps:
        return
    tree = calls_of(entry)
    width = wide(tree.cycles, CYCLES)
    yield style.dim(
        f"{'cycles':>{width}}{'share':>7}{'own':>{width}}{'calls':>7}  function, called from"
    )
    yield from call_tree(result, entry.graph, tree)
    yield style.dim(f"{'cycles':>{width}}{'share':>7}{'count':>7}  costliest blocks")
    blocks: Counter[tuple[int, int]] = Counter()  # cycles by context and address
    counts: Counter[tuple[int, int]] = Counter()
    pending = [tree]
    while pending:
        pending += (at := pending.pop()).children
        found = [(entry.graph.nodes[n].block.addr, runs, cycles) for n, runs, cycles in at.blocks]
        for addr, runs, cycles in sorted(found):
            blocks[at.stretch.context, addr] += cycles
            counts[at.stretch.context, addr] += runs
    for (context, addr), cycles in blocks.most_common(BRIEF_BLOCKS):
        yield (
            f"{cycles:>{width},}{cycles / tree.cycles:>7.1%}{counts[context, addr]:>7,}  "
            f"{result.image.place(addr)}{style.dim(callers(result, entry, context))}"
        )


def calls_of(entry: EntryResult) -> PathOutline:
    """The worst path as a tree of calls."""
    return outline(entry.graph, entry.costs, entry.solution, entry.path.steps, loops=False)


def call_tree(result: AnalysisResult, graph: Supergraph, tree: PathOutline) -> Iterator[str]:
    """Calls in depth-first order, with their cycles and their callees'."""
    whole = tree.cycles
    width = wide(whole, CYCLES)
    pending = [(tree, 0)]
    while pending:
        at, depth = pending.pop()
        called = graph.contexts[at.stretch.context]
        site = "" if called.call_site is None else f"  {line_of(result, called.call_site)}"
        yield (
            f"{at.cycles:>{width},}{at.cycles / whole:>7.1%}{sum(at.own):>{width},}"
            f"{at.entries:>7,}  {indent(depth)}{result.function(called.function)}{site}"
        )
        shown = [c for c in at.children if c.cycles >= BRIEF_SHARE * whole]
        rest = sum(c.cycles for c in at.children) - sum(c.cycles for c in shown)
        if rest:
            others = f"{len(at.children) - len(shown)} callees of less than {BRIEF_SHARE:.0%} each"
            gap = " " * (width + 7)
            yield f"{rest:>{width},}{rest / whole:>7.1%}{gap}  {indent(depth + 1)}{others}"
        pending += [(c, depth + 1) for c in reversed(shown)]


def indent(depth: int) -> str:
    """Two columns a level, up to a limit."""
    return "  " * depth if 2 * depth <= DEEPEST else " " * DEEPEST + f"[{depth}] "


def line_of(result: AnalysisResult, address: int) -> str:
    """The source line of an address, or the address."""
    line = result.image.line(address)
    return hex(address) if line is None else str(line)


def callers(result: AnalysisResult, entry: EntryResult, context: int) -> str:
    """The call string of a context, outermost last, without its own function."""
    chain = entry.graph.call_string(context)
    return "".join(f" < {result.function(c.function)}" for c in reversed(chain[:-1]))


def full_path(result: AnalysisResult, entry: EntryResult, style: TextStyle) -> Iterator[str]:
    """Every block in order; repetitions of the same block are one row."""
    yield style.bold(f"worst path of {entry.name}{entry.for_what}, every block")
    yield style.dim(f"{'sum':>10}{'cycles':>8}{'count':>7}  function, block, source line, causes")
    spent = 0
    for (node, causes), group in groupby(
        entry.charged_steps(), key=lambda charged: (charged[0].node, charged[1])
    ):
        count = sum(1 for _ in group)
        cycles = count * sum(causes)
        spent += cycles
        block = entry.graph.nodes[node].block
        depth = len(entry.graph.call_string(entry.graph.nodes[node].context)) - 1
        why = ", ".join(f"{CAUSES[c]} {count * causes[c]}" for c in CostCause if causes[c])
        yield (
            f"{spent:>10,}{cycles:>8,}{count:>7,}  {indent(depth)}"
            f"{result.image.place(block.addr)}  {style.dim(why)}"
        )


def loops(result: AnalysisResult, style: TextStyle) -> str:
    """Every loop once: its bounds over all contexts and entries, with their evidence."""
    found: dict[tuple[str, str], list[tuple[int | None, str]]] = {}
    for entry in result.entries.values():
        for loop, bound in zip(entry.graph.loops, entry.bounds, strict=True):
            place = result.image.place(entry.graph.nodes[loop.header].block.addr)
            key = (place, bound.method)
            found.setdefault(key, []).append((bound.iterations(entry.graph), bound.explained))
    rows = [style.bold("loops"), style.dim(f"{'bound':>10}  {'method':<8}{'contexts':>9}  place")]
    for (place, method), instances in sorted(found.items()):
        numbers = [(n, text) for n, text in instances if n is not None]
        low, high = min(numbers, default=(None, ""))[0], max(numbers, default=(None, ""))[0]
        span = ("-" if low is None else f"{low}") if low == high else f"{low}..{high}"
        evidence = style.dim(max(numbers, default=instances[0])[1])
        rows.append(f"{span:>10}  {method:<8}{len(instances):>9}  {place}  {evidence}")
    return "\n".join(rows) if found else style.bold("loops") + "\n  none"


def fact_labels(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """The evidence for each fact that is not proved (rule 28)."""
    if not result.facts:
        return
    rows = [style.bold("facts")]
    rows += [
        f"  {f.brief:<28}{f.source}: {f.text}{f' {f.broken}' if f.broken else ''}"
        for f in result.facts
        if f.status is not FactStatus.PROVED
    ]
    proved = sum(f.status is FactStatus.PROVED for f in result.facts)
    if proved:
        rows.append(style.dim(f"  {'proved':<28}{proved} facts: no assumptions"))
    yield "\n".join(rows)


def never_returning(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """The called functions that never return, with the evidence."""
    found = dict.fromkeys(one for entry in result.entries.values() for one in entry.never_returning)
    if found:
        yield "\n".join([style.bold("functions that never return"), *(f"  {one}" for one in found)])


def proved_exclusions(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """The exclusions that refinement has proved, with their decisions."""
    for name, entry in result.entries.items():
        if entry.proved:
            head = style.bold(f"decisions that exclude each other on paths of {name}, proved")
            yield "\n".join([head, *exclusions_text(entry.proved)])


def assumptions(result: AnalysisResult, style: TextStyle) -> str:
    """All assumptions of the bounds, numbered."""
    rows = [style.bold("assumptions")]
    rows += [f"{number:>4}. {text}" for number, text in enumerate(result.assumptions, 1)]
    return "\n".join(rows)


def stats(result: AnalysisResult, style: TextStyle) -> str:
    """Size of each graph; time and peak memory of each stage."""
    rows = [style.bold("graphs")]
    for name, entry in result.entries.items():
        g = entry.graph
        instructions = sum(len(n.block.insns) for n in g.nodes)
        rows.append(
            f"  {name:<16}{len(g.contexts):>7,} contexts{len(g.nodes):>9,} blocks"
            f"{len(g.edges):>9,} edges{instructions:>10,} instructions{len(g.loops):>6,} loops"
            f"{len(entry.infeasible):>7,} infeasible edges removed"
        )
    rows.append(style.bold("stages"))
    rows += [
        f"  {name:<16}{use.seconds:>9.3f} s{use.peak_mib:>9.1f} MiB peak so far"
        for name, use in result.stages.items()
    ]
    total = sum(use.seconds for use in result.stages.values())
    rows.append(f"  {'all':<16}{total:>9.3f} s")
    return "\n".join(rows)
