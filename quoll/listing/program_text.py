"""Programs as text for people: summary, disassembly, call graph, loops.

Every line about code names its place: address, symbol and offset, source line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from quoll.cfg.call_graph import Recursion, call_graph, recursions
from quoll.cfg.cfg import Block, Cfg, EdgeKind, JumpTable, Program
from quoll.graph.natural_loops import NaturalLoop, find_loops, retreating_edges
from quoll.image.image import Image
from quoll.inlining.context_count import ContextCounter
from quoll.inlining.vivu import FULL, VivuSettings
from quoll.input_files import Unreadable, read_input
from quoll.listing.never_returns import why_never_returns

__all__ = ["call_graph_text", "disassembly", "function_loops", "loops_text", "summary"]

LARGEST = 8  # entries whose size a summary shows
LARGEST_SOURCE = 16 << 20  # bytes of a source file


def function_loops(cfg: Cfg) -> tuple[tuple[NaturalLoop, ...], list[tuple[int, int]]]:
    """The loops of a function by block index, and the edges into loops beside their header."""
    successors: list[list[int]] = [[] for _ in cfg.blocks]
    for edge in cfg.edges:
        successors[edge.src].append(edge.dst)
    return find_loops(successors, 0), retreating_edges(successors, 0)


def summary(program: Program, image: Image, vivu: VivuSettings = FULL) -> str:
    """The program in a screenful, with complete lists of unresolved places.

    ``vivu`` distinguishes the contexts that are counted.
    """
    cfgs = program.functions.values()
    loops = {cfg.entry: function_loops(cfg) for cfg in cfgs}
    lines = [
        f"functions     {len(program.functions)}",
        f"instructions  {sum(len(b.insns) for cfg in cfgs for b in cfg.blocks)}",
        f"blocks        {sum(len(cfg.blocks) for cfg in cfgs)}",
        f"edges         {sum(len(cfg.edges) for cfg in cfgs)}",
        f"loops         {sum(len(found) for found, _ in loops.values())}",
        f"jump tables   {sum(_is_table(found) for found in program.jump_tables)}",
    ]
    lines += _sizes(program, image, vivu)
    lines += [
        f"several entries: loop of {image.place(program.functions[f].blocks[dst].addr)}"
        for f, (_, irreducible) in loops.items()
        for dst in sorted({dst for _, dst in irreducible})
    ]
    lines += [
        f"never returns: {image.place(c.entry)}: {why_never_returns(program, c, image)}"
        for c in cfgs
        if not c.returns
    ]
    lines += [f"recursion: {_recursion(program, recursion)}" for recursion in recursions(program)]
    lines += [f"unresolved: {u.where}: {u.reason} ({u.hint})" for u in program.unresolved]
    lines += [f"assumed: {assumption}" for assumption in program.assumptions]
    return "\n".join(lines) + "\n"


def _is_table(found: JumpTable) -> bool:
    """Whether an index chooses among targets; a target from a literal is a constant."""
    return found.table is not None and len(found.targets) > 1


def _sizes(program: Program, image: Image, vivu: VivuSettings) -> Iterator[str]:
    """The size of each entry's virtual inlining, largest first, up to a screenful."""
    count = ContextCounter(program, image, vivu)
    sizes = {entry: count.of(entry) for entry in program.entries}
    order = sorted(sizes, key=lambda e: -(size.instructions if (size := sizes[e]) else 0))
    for entry in order[:LARGEST]:
        size = sizes[entry]
        text = (
            f"{size.contexts} contexts, {size.blocks} blocks, {size.instructions} instructions"
            if size
            else "recursive"
        )
        yield f"inlined       {text} from {image.place(entry)}"
    if len(order) > LARGEST:
        yield f"              and {len(order) - LARGEST} smaller entries"


def _recursion(program: Program, recursion: Recursion) -> str:
    """A chain of calls, and its stated or proved depths."""
    names = [program.functions[call.caller].name for call in recursion.cycle]
    depths = program.guidance.depths
    given = [
        f"at most {depths[f].activations} activations of {program.functions[f].name}"
        f"{'' if depths[f].facts else ', proved'}"
        for f in sorted(recursion.functions & depths.keys())
    ]
    if not recursion.bounded:
        given.append("no depth is given" if not given else "others have no depth")
    return f"{' -> '.join([*names, names[0]])} ({', '.join(given)})"


def call_graph_text(program: Program, image: Image) -> str:
    """Each function with the calls it makes, callers first; tail calls are marked."""
    graph = call_graph(program)
    lines = []
    for function in reversed(graph.order):
        lines.append(image.place(function))
        for call in graph.calls[function]:
            name = program.functions[call.callee].name
            kind = "tail call" if call.tail else "call"
            lines.append(f"    {kind} of {name} at {image.place(call.site)}")
    lines += [f"recursion: {_recursion(program, recursion)}" for recursion in recursions(program)]
    return "\n".join(lines) + "\n"


def loops_text(program: Program, image: Image) -> str:
    """Each loop with its nesting: header, back edges, number of blocks."""
    lines = []
    for cfg in program.functions.values():
        loops, irreducible = function_loops(cfg)
        depth: list[int] = []
        for loop in loops:
            depth.append(0 if loop.parent is None else depth[loop.parent] + 1)
            backs = ", ".join(f"0x{cfg.blocks[t].last.addr:08x}" for t in loop.tails)
            where = image.place(cfg.blocks[loop.header].addr)
            text = f"loop at {where}, {len(loop.nodes)} blocks, back from {backs}"
            lines.append(f"{'    ' * depth[-1]}{text}")
        for src, dst in irreducible:
            lines.append(
                f"several entries: {image.place(cfg.blocks[src].last.addr)} leads back to "
                f"{image.place(cfg.blocks[dst].addr)}"
            )
    return "\n".join(lines) + "\n" if lines else "no loops\n"


def disassembly(cfg: Cfg, image: Image) -> str:
    """The blocks of a function: source lines between instructions, edges below each block."""
    loops, _ = function_loops(cfg)
    lines = [f"{image.place(cfg.entry)}{'' if cfg.returns else ', never returns'}"]
    for block in cfg.blocks:
        around = [i for i, loop in enumerate(loops) if block.index in loop.nodes]
        header = any(loop.header == block.index for loop in loops)
        marks = "".join(f", in loop {i}" for i in around) + (", loop header" if header else "")
        lines.append(f"block {block.index}{marks}")
        lines.extend(_instructions(block, image))
        lines.extend(f"        -> {text}" for text in _effects(cfg, block, image))
    return "\n".join(lines) + "\n"


def _instructions(block: Block, image: Image) -> Iterator[str]:
    previous = None
    for insn in block.insns:
        line = image.line(insn.addr)
        if line is not None and line != previous:
            text = _source(Path(line.path).absolute()).get(line.line, "")
            yield f"    {line}  {text}".rstrip()
        previous = line
        raw = insn.raw[::-1].hex() if not insn.thumb else _halfwords(insn.raw)
        yield f"  {insn.addr:08x}  {raw:<9} {insn.text}"


def _halfwords(raw: bytes) -> str:
    return " ".join(raw[i : i + 2][::-1].hex() for i in range(0, len(raw), 2))


@cache
def _source(path: Path) -> dict[int, str]:
    """The lines of a source file by number; none if the file is missing."""
    try:
        text = read_input(path, LARGEST_SOURCE).decode("utf-8", "replace")
    except Unreadable:
        return {}
    return {number: line.strip() for number, line in enumerate(text.splitlines(), 1)}


def _effects(cfg: Cfg, block: Block, image: Image) -> Iterator[str]:
    for callee in block.calls:
        yield f"{'tail call of' if block.tail else 'call of'} {image.place(callee)}"
    for callee in block.passes:
        yield f"call of {image.place(callee)}, replaced by a bound"
    for edge in cfg.successors(block.index):
        target = image.place(cfg.blocks[edge.dst].addr)
        back = " after the call" if edge.kind is EdgeKind.ACROSS else f" ({edge.kind.value})"
        yield f"block {edge.dst}{back} {target}"
    if block.returns:
        yield "return"
    if block.exits:
        yield "end of path"
