"""Random supergraphs with real instructions, and concrete walks through them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from random import Random

from quoll.abstract_domain.terms import RIGID
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.cfg.cfg import Block, EdgeKind
from quoll.graph.dominators import reverse_postorder
from quoll.graph.natural_loops import find_loops
from quoll.image.image import Image
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperLoop, SuperNode
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress
from tests.testing.quoll.building import TEXT_BASE, build

CODE = 0xF0010000
DATA = 0xF0020000
DEVICE = 0xF8000000
FOREIGN = 0x00100000  # in no region: may be cached or not
SYMBOLS = range(RIGID, RIGID + 8)
STRIDES = (32, 32, 64, 4, 16, 36, 0xFFFFFFE0, 512, 1024, 2048, 4096, 0)  # bytes, modulo 2**32
# Words in RAM, each with a known divisor; other words may be any.
ALIGNED = {
    **dict.fromkeys(SYMBOLS[2:4], 32),
    **dict.fromkeys(SYMBOLS[4:6], 512),
    **dict.fromkeys(SYMBOLS[6:], 4),
}

PLAIN = """
    add r0, r1, r2
    ldr r3, [r4]
    ldr r3, [r4]
    ldr r3, [r4]
    ldrb r3, [r4]
    ldrne r3, [r4]
    pld [r4]
    str r3, [r4]
    strb r3, [r4]
    streq r3, [r4]
    ldrd r2, r3, [r4]
    strd r2, r3, [r4]
    ldm r4, {r0-r3, r5-r9}
    ldmeq r4, {r0-r3}
    stm r4, {r0-r3, r5-r9}
    swp r0, r1, [r4]
    ldrex r0, [r4]
    strex r0, r1, [r4]
    vldr d0, [r4]
    vstr d0, [r4]
    vldm r4, {d0-d5}
    vstm r4, {d0-d5}
"""
BLOCKS = """
    ldr r3, [r4]
    ldrb r3, [r4]
    ldrd r2, r3, [r4]
    ldm r4, {r0-r3}
    ldm r4, {r0-r3, r5-r9}
    str r3, [r4]
"""
LOADS = """
    add r0, r1, r2
    ldr r3, [r4]
    ldr r3, [r4]
    ldrb r3, [r4]
    str r3, [r4]
"""
MAINTENANCE = """
    mcr p15, 0, r0, c7, c5, 0
    mcr p15, 0, r0, c7, c5, 1
    mcr p15, 0, r0, c7, c5, 4
    mcr p15, 0, r0, c7, c6, 0
    mcr p15, 0, r0, c7, c10, 0
    mcr p15, 0, r0, c7, c10, 1
    mcr p15, 0, r0, c7, c10, 4
    mcr p15, 0, r0, c7, c14, 0
    mcr p15, 0, r0, c7, c14, 1
    mcr p15, 0, r0, c13, c0, 1
    mcr p15, 0, r0, c9, c0, 0
"""
ENDS = """
    beq .
    bne .
    b .
    bl .
    bx lr
    bxeq lr
    mov pc, lr
    pop {r4, r5, pc}
    popne {r4, pc}
    ldr pc, [r4]
    addeq pc, r0, r1
    blxne r3
"""


@cache
def pool(text: str) -> tuple[Insn, ...]:
    """The instructions of an assembler text, decoded as if each stood at address 0."""
    image = Image.load(build(f".text\n.fpu vfp\n.global main\nmain:\n{text}", language="asm"))
    count = len([line for line in text.splitlines() if line.strip()])
    code = image.read(TEXT_BASE, 4 * count)
    assert code is not None
    return tuple(decode(code[4 * i : 4 * i + 4], 0, False) for i in range(count))


def at(insn: Insn, addr: int) -> Insn:
    """``insn`` moved to ``addr``."""
    return insn._replace(addr=addr)


@dataclass(frozen=True)
class Program:
    """A random supergraph, with the results of its value analysis."""

    graph: Supergraph
    values: dict[tuple[int, int], ValueSet | None]
    origins: dict[tuple[int, int], SymbolicAddress] = field(default_factory=dict)
    renamed: dict[int, dict[int, int]] = field(default_factory=dict)  # by edge; else all stay
    strides: dict[tuple[int, int], int] = field(default_factory=dict)  # of cache operations

    def access(self, node: int, insn: int) -> ValueSet | None:
        return self.values[node, insn]

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        return self.origins.get((node, insn))

    def aliases(self, edge: int) -> dict[int, int]:
        return self.renamed.get(edge, {symbol: symbol << 32 for symbol in SYMBOLS})

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None:
        return self.strides.get((node, insn))


def random_program(
    random: Random,
    *,
    maintenance: bool = True,
    blocks: int = 8,
    text: str = PLAIN,
    operations: str = MAINTENANCE,
    steady: bool = False,
    tables: bool = False,
    objects: bool = False,
) -> Program:
    """Blocks at a few close and a few conflicting places, joined by random edges.

    ``text``: instructions to draw from; ``operations``: cache operations to draw from. ``steady``:
    most addresses are of one symbol, which edges advance or preserve. ``tables``: most are in known
    ranges of a few lines. ``objects``: all are words at distances from few symbols.
    """
    plain, special = pool(text), pool(operations)
    ends = pool(ENDS)
    made: list[Block] = []
    followed: list[bool] = []  # by the next block in memory
    addr = CODE
    for index in range(random.randint(2, blocks)):
        if not index or not followed[-1] or random.random() < 0.2:
            if index and followed[-1]:
                followed[-1] = False
            addr = CODE + 4096 * random.randrange(3) + 4 * random.randrange(40)
            addr += 4096 * 4 * index  # blocks never overlap
        insns = []
        for _ in range(random.randint(0, 9)):
            choice = special if maintenance and random.random() < 0.05 else plain
            insns.append(at(random.choice(choice), addr))
            addr += 4
        end = random.choice([*ends, ends[0], None])
        if end is not None or not insns:
            insns.append(at(end or ends[0], addr))
            addr += 4
        made.append(Block(index, tuple(insns)))
        followed.append(insns[-1].conditional or end is None)
    edges = _edges(random, made, followed)
    return program_of(random, made, edges, steady=steady, tables=tables, objects=objects)


def _edges(random: Random, blocks: Sequence[Block], followed: Sequence[bool]) -> list[SuperEdge]:
    edges: list[SuperEdge] = []
    for i, block in enumerate(blocks):
        last = block.last
        next_in_memory = i + 1 < len(blocks) and blocks[i + 1].addr == block.end
        if next_in_memory and (last.flow.name == "NEXT" or last.conditional):
            edges.append(SuperEdge(i, i + 1, EdgeKind.FALLTHROUGH))
        if last.flow.name == "NEXT":
            continue
        kind = {"JUMP": EdgeKind.TAKEN, "CALL": EdgeKind.CALL}.get(last.flow.name, EdgeKind.RETURN)
        for target in {random.randrange(len(blocks)) for _ in range(random.choice([1, 1, 2]))}:
            edges.append(SuperEdge(i, target, kind))
    return edges


def program_of(
    random: Random,
    blocks: Sequence[Block],
    edges: list[SuperEdge],
    *,
    steady: bool = False,
    tables: bool = False,
    objects: bool = False,
) -> Program:
    """A program of these blocks with random data addresses; the first one is its entry."""
    successors: list[list[int]] = [[] for _ in blocks]
    for e in edges:
        successors[e.src].append(e.dst)
    kept = sorted(reverse_postorder(successors, 0))
    number = {old: new for new, old in enumerate(kept)}
    edges = [SuperEdge(number[e.src], number[e.dst], e.kind) for e in edges if e.src in number]
    nodes = tuple(SuperNode(0, blocks[old]) for old in kept)
    out: list[list[int]] = [[] for _ in nodes]
    into: list[list[int]] = [[] for _ in nodes]
    for i, e in enumerate(edges):
        out[e.src].append(i)
        into[e.dst].append(i)
    graph = Supergraph(
        contexts=(Context(None, None, CODE),),
        nodes=nodes,
        edges=tuple(edges),
        successors=tuple(map(tuple, out)),
        predecessors=tuple(map(tuple, into)),
        entry=0,
        exits=(),
        loops=tuple(_loops(edges, len(nodes), into)),
    )
    values: dict[tuple[int, int], ValueSet | None] = {}
    origins: dict[tuple[int, int], SymbolicAddress] = {}
    unknown = random.choice([0.0, 0.2] if tables else [0.0, 0.3, 0.9])
    unknown = 1.0 if steady or objects else unknown
    for n, node in enumerate(nodes):
        for i, insn in enumerate(node.block.insns):
            if insn.memory is None:
                continue
            values[n, i] = _in_tables(random) if tables else _values(random)
            if random.random() < unknown:
                origin = origins[n, i] = _origin(random, steady=steady, objects=objects)
                values[n, i] = _within(origin) if origin.symbol in ALIGNED else None
    images = _advances if steady else _images
    renamed = {e: images(random) for e in range(len(edges)) if random.random() < 0.4}
    strides = {
        (n, i): random.choice(STRIDES)
        for n, node in enumerate(nodes)
        for i, insn in enumerate(node.block.insns)
        if insn.mnemonic == "mcr" and random.random() < 0.7
    }
    return Program(graph, values, origins, renamed, strides)


def _origin(random: Random, *, steady: bool, objects: bool) -> SymbolicAddress:
    if steady and random.random() < 0.9:
        return SymbolicAddress(SYMBOLS[0], 4 * random.choice([0, 0, 1]))
    if objects or random.random() < 0.2:
        return SymbolicAddress(random.choice([SYMBOLS[0], *SYMBOLS[6:]]), 4 * random.randrange(16))
    return SymbolicAddress(
        random.choice(SYMBOLS), 4 * random.choice([-9, 0, 1, 2, 3, 5, 7, 8, 11, 1030])
    )


def _within(origin: SymbolicAddress) -> ValueSet:
    """Any address in RAM with the required remainder."""
    low = 0xF0010000 + origin.offset % ALIGNED[origin.symbol]
    return ValueSet(low, low + 0x100000, ALIGNED[origin.symbol])


def _advances(random: Random) -> dict[int, int]:
    """Each symbol stands for itself and a multiple of a word."""
    steps = (4 * random.choice([-4, -1, 1, 1, 2, 3, 4, 8]) & 0xFFFFFFFF for _ in SYMBOLS)
    images = {symbol: symbol << 32 | step for symbol, step in zip(SYMBOLS, steps, strict=True)}
    return images | {symbol: symbol << 32 for symbol in ALIGNED}


def _images(random: Random) -> dict[int, int]:
    """Some symbols stand for others plus a constant afterwards, some for any word."""
    images: dict[int, int] = {}
    for symbol in SYMBOLS:
        step = ALIGNED.get(symbol, 4)
        kind = [other for other in SYMBOLS if ALIGNED.get(other) == ALIGNED.get(symbol)]
        choice = random.random()
        if choice < 0.5:
            images[symbol] = symbol << 32
        elif choice < 0.8:
            offset = step * random.choice([-1, 0, 1, 2]) & 0xFFFFFFFF
            images[symbol] = random.choice(kind) << 32 | offset
    return images


def concrete_word(random: Random, symbol: int) -> int:
    """A word that ``symbol`` may stand for."""
    if symbol in ALIGNED:
        step = ALIGNED[symbol]
        return DATA + 4096 * random.randrange(3) + step * random.randrange(16 if step < 32 else 4)
    place = random.choice([DATA, DATA, DATA + 4096, DATA + 2 * 4096, DEVICE + 64, FOREIGN + 64])
    return place + 4 * random.randrange(24)


def _loops(edges: list[SuperEdge], count: int, into: list[list[int]]) -> list[SuperLoop]:
    """Natural loops; cycles without a dominating header are left out."""
    successors: list[list[int]] = [[] for _ in range(count)]
    for e in edges:
        successors[e.src].append(e.dst)
    return [
        SuperLoop(
            index,
            loop.header,
            tuple(i for i in into[loop.header] if edges[i].src not in loop.nodes),
            tuple(i for i in into[loop.header] if edges[i].src in loop.nodes),
            loop.nodes,
            loop.parent,
        )
        for index, loop in enumerate(find_loops(successors, 0))
    ]


def _values(random: Random) -> ValueSet | None:
    base = DATA + 4096 * random.randrange(2) + 4 * random.randrange(24)
    choice = random.random()
    if choice < 0.6:
        return ValueSet.of(base)
    if choice < 0.7:
        return ValueSet(base, base + 4 * random.randint(1, 12) * 4, 4)
    if choice < 0.75:
        return ValueSet(base, base + 8192, 4096)
    if choice < 0.8:
        return ValueSet.of(DEVICE + 4 * random.randrange(8))
    if choice < 0.85:
        return ValueSet.of(FOREIGN + 4 * random.randrange(64))
    if choice < 0.9:
        return ValueSet(base, base + (1 << 14), 4)
    if choice < 0.95:
        step = random.choice([64, 512])
        return ValueSet(base, base + (step << 10), step)
    return None


def _in_tables(random: Random) -> ValueSet:
    """A word, or one of a table; some of them compete for sets."""
    base = DATA + 4096 * random.choice([0, 0, 0, 0, 1]) + 32 * random.randrange(6)
    return random.choice(
        [
            ValueSet.of(base + 4 * random.randrange(8)),
            ValueSet(base + 28, base + 36, 4),
            ValueSet(base, base + 4 * random.randint(8, 39), 4),
            ValueSet(base, base + 128, 64),
            ValueSet(base, base + 704, 4),  # more lines than the smallest cache has sets
        ]
    )


def concrete_address(random: Random, insn: Insn, values: ValueSet | None) -> int:
    """A member of ``values``, aligned as the architecture or the platform demands."""
    assert insn.memory is not None
    if values is not None:
        return random.choice(list(values)[:4096])
    align = 4 if insn.memory.count > 1 else insn.memory.size
    place = random.choice([DATA, DATA + 4096, DATA + 3 * 4096, DEVICE])
    return place + align * random.randrange(4096 // align)


class Words:
    """The values of a program's symbols along one path."""

    def __init__(self, program: Program, random: Random) -> None:
        self._program, self._random = program, random
        self._words = {symbol: concrete_word(random, symbol) for symbol in SYMBOLS}

    def follow(self, edge: int) -> None:
        """Go along ``edge``."""
        images, before, self._words = self._program.aliases(edge), self._words, {}
        for symbol in SYMBOLS:
            term = images.get(symbol)
            if term is None:
                self._words[symbol] = concrete_word(self._random, symbol)
            else:
                self._words[symbol] = before[term >> 32] + term & 0xFFFFFFFF

    def address(self, node: int, index: int, insn: Insn) -> int:
        """An address that the access of an instruction may have."""
        origin = self._program.origin(node, index)
        if origin is not None:
            return self._words[origin.symbol] + origin.offset
        return concrete_address(self._random, insn, self._program.values[node, index])


def straight(text: str, values: list[ValueSet | None], addr: int = CODE) -> Program:
    """One block of the instructions of ``text``."""
    return in_one_block(pool(text), values, addr)


def in_one_block(
    chosen: Sequence[Insn], values: list[ValueSet | None], addr: int = CODE
) -> Program:
    """One block of these instructions; ``values``: the addresses of those that access memory."""
    insns = tuple(at(insn, addr + 4 * i) for i, insn in enumerate(chosen))
    graph = Supergraph(
        (Context(None, None, addr),),
        (SuperNode(0, Block(0, insns)),),
        (),
        ((),),
        ((),),
        0,
        (0,),
        (),
    )
    left = iter(values)
    return Program(
        graph, {(0, i): next(left) for i, insn in enumerate(insns) if insn.memory is not None}
    )
