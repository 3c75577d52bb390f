"""A worst path as text: a tree of calls and loops, its source lines, and collapsed stacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ilp.paths.outline import PathOutline
from loopbounds.proof.bound import NamedCount
from pipeline.costs import CostCause
from quoll.inlining.supergraph import Supergraph
from quoll.input_files import Unreadable, read_input
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.reports.result_text import CAUSES, TextStyle, line_of

__all__ = ["SourceUse", "TreeFolding", "collapsed", "source_listing", "source_use", "tree"]

LARGEST_SOURCE = 16 << 20  # bytes of a source file
AROUND = 2  # source lines shown before and after executed ones
SHARE_SHOWN = 0.15  # a row names a cause from this share on


@dataclass(frozen=True, slots=True)
class TreeFolding:
    """The folding of a tree: subtrees below a share of the whole, or below a depth."""

    least: float  # share of the whole path, 0 to 1
    depth: int | None


def tree(
    result: AnalysisResult,
    entry: EntryResult,
    whole: PathOutline,
    folding: TreeFolding,
    style: TextStyle,
) -> Iterator[str]:
    """One row per call and loop, in the order of the path; folded subtrees are summed up."""
    yield style.dim(f"{'cycles':>12}{'share':>7}{'own':>11}{'count':>9}  call or loop")
    pending = [(whole, "", "", 0)]
    while pending:
        at, lead, below, depth = pending.pop()
        yield row(result, entry, whole, at, lead, style)
        deep = folding.depth is not None and depth >= folding.depth
        shown = [
            section
            for section in at.children
            if not deep and section.cycles >= folding.least * whole.cycles
        ]
        rest = sum(section.cycles for section in at.children) - sum(
            section.cycles for section in shown
        )
        hidden = len(at.children) - len(shown)
        if hidden:
            corner = "├─ " if shown else "└─ "
            more = f"{below}{corner}… {hidden} folded"
            yield style.dim(f"{rest:>12,}{rest / whole.cycles:>7.1%}{'':>20}  {more}")
        last = shown[-1] if shown else None
        pending += [
            (section, below + ("└─ " if section is last else "├─ "),
             below + ("   " if section is last else "│  "), depth + 1)
            for section in reversed(shown)
        ]  # fmt: skip


def row(
    result: AnalysisResult,
    entry: EntryResult,
    whole: PathOutline,
    at: PathOutline,
    lead: str,
    style: TextStyle,
) -> str:
    """A row: cycles, share, own cycles, count, and the call or loop."""
    if at.stretch.loop is None:
        count, text = f"{at.entries:,}", call_text(result, entry, at)
    else:
        count, text = (
            f"{at.iterations:,}",
            f"{loop_name(result, entry.graph, at)}{loop_text(entry, at)}",
        )
    causes = [
        f"{CAUSES[c]} {at.total[c] / at.cycles:.0%}"
        for c in sorted(CostCause, key=lambda c: -at.total[c])
        if at.cycles and at.total[c] > SHARE_SHOWN * at.cycles
    ]
    return (
        f"{at.cycles:>12,}{at.cycles / whole.cycles:>7.1%}{sum(at.own):>11,}{count:>9}  "
        f"{lead}{text}  {style.dim(', '.join(causes))}"
    )


def call_text(result: AnalysisResult, entry: EntryResult, at: PathOutline) -> str:
    """The text of a call: its function, and the line of the call site."""
    context = entry.graph.contexts[at.stretch.context]
    site = "" if context.call_site is None else f"  from {line_of(result, context.call_site)}"
    return f"{result.function(context.function)}{site}"


def loop_name(result: AnalysisResult, graph: Supergraph, at: PathOutline) -> str:
    """The name of a loop, as ``loop cspace.c:26``."""
    assert at.stretch.loop is not None
    header = graph.loops[at.stretch.loop].header
    later = " after its first iteration" if graph.apart(graph.loops[at.stretch.loop]) else ""
    return f"loop {line_of(result, graph.nodes[header].block.addr)}{later}"


def loop_text(entry: EntryResult, at: PathOutline) -> str:
    """The entries of a loop, and its bound per entry, as text."""
    assert at.stretch.loop is not None
    bound = entry.bounds[at.stretch.loop]
    limit = bound.evidence.most if isinstance(bound.evidence, NamedCount) else bound.bound
    times = "once" if at.entries == 1 else f"{at.entries:,} times"
    return f", entered {times}, at most {limit} each"


def collapsed(result: AnalysisResult, entry: EntryResult, whole: PathOutline) -> Iterator[str]:
    """Collapsed stacks for flame-graph viewers: ``caller;callee;loop file.c:1;cause cycles``."""
    for around, at in whole.walk():
        names = [
            (
                result.function(entry.graph.contexts[section.stretch.context].function)
                if section.stretch.loop is None
                else loop_name(result, entry.graph, section)
            ).replace(";", ":")
            for section in (*around, at)
        ]
        for cause in CostCause:
            if at.own[cause]:
                yield f"{';'.join(names)};[{CAUSES[cause]}] {at.own[cause]}"


@dataclass(slots=True)
class SourceUse:
    """One source line on a path: executions of its most executed block, and cycles."""

    runs: int = 0
    cycles: int = 0


@dataclass(slots=True)
class _File:
    lines: dict[int, SourceUse] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        return sum(use.cycles for use in self.lines.values())


def source_use(result: AnalysisResult, entry: EntryResult, whole: PathOutline) -> dict[str, _File]:
    """Uses by path and line; a block's cycles are distributed over its instructions.

    Code without a line is under the path ``?``, by address.
    """
    files: dict[str, _File] = {}
    runs: dict[tuple[str, int, int], int] = {}
    for _, section in whole.walk():
        for node, executions, cycles in section.blocks:
            insns = entry.graph.nodes[node].block.insns
            for position, insn in enumerate(insns):
                line = result.image.line(insn.addr)
                path, number = (line.path, line.line) if line else ("?", insn.addr)
                use = files.setdefault(path, _File()).lines.setdefault(number, SourceUse())
                n = len(insns)
                use.cycles += cycles * (position + 1) // n - cycles * position // n
            for line in {result.image.line(insn.addr) for insn in insns} - {None}:
                assert line is not None
                key = line.path, line.line, insns[0].addr
                runs[key] = runs.get(key, 0) + executions
    for (path, number, _), count in runs.items():
        use = files[path].lines[number]
        use.runs = max(use.runs, count)
    return files


def source_listing(
    result: AnalysisResult, entry: EntryResult, whole: PathOutline, folder: Path, style: TextStyle
) -> Iterator[str]:
    """The source lines on the path with executions and cycles, the costliest files first.

    ``folder``: the compiler's folder, to which paths in the ELF may be relative.
    """
    files = source_use(result, entry, whole)
    for path, file in sorted(files.items(), key=lambda item: -item[1].cycles):
        share = file.cycles / whole.cycles
        yield ""
        yield style.bold(f"{path}: {file.cycles:,} cycles, {share:.1%}")
        yield style.dim(f"{'cycles':>12}{'share':>7}{'runs':>9}")
        if path == "?":
            yield from without_lines(result, whole, file)
            continue
        text = read_source(folder / path)
        if not text:
            yield f"  {folder / path} is not there: name its folder with --source-dir"
        shown = {n + k for n in file.lines for k in range(-AROUND, AROUND + 1)} if text else None
        before = 0
        for number in sorted(shown if shown is not None else file.lines):
            if number < 1 or (text and number > len(text)):
                continue
            if before and number > before + 1:
                yield style.dim(f"{'':>28}    …")
            before = number
            source = text[number - 1].rstrip().expandtabs(4) if text else ""
            use = file.lines.get(number)
            if use is None:
                yield style.dim(f"{'':>28}{number:>6}  {source}")
            else:
                yield (
                    f"{use.cycles:>12,}{use.cycles / whole.cycles:>7.1%}{use.runs:>9,}"
                    f"{number:>6}  {source}"
                )


def without_lines(result: AnalysisResult, whole: PathOutline, file: _File) -> Iterator[str]:
    """Code without lines in the line table, by instruction."""
    for addr, use in sorted(file.lines.items()):
        yield (
            f"{use.cycles:>12,}{use.cycles / whole.cycles:>7.1%}{'':>9}  {result.image.place(addr)}"
        )


def read_source(path: Path) -> list[str]:
    """The lines of a source file; none if it is missing."""
    try:
        return read_input(path, LARGEST_SOURCE).decode("utf-8", "replace").splitlines()
    except Unreadable:
        return []
