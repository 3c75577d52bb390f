"""Small kernels that test for interrupts as the controllers' drivers do, and all their executions.

``TESTS`` are functions that return whether an interrupt is pending, in r0; r4 to r8 stay, r5 is the
base of the controller. ``SHAPES`` are operations with such tests: ``bl test`` stands for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.preemption.pending import find_pending_tests
from quoll.preemption.predicate import PendingPredicate
from quoll.preemption.segments import PendingSegment, segments
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.sketch import assemble
from tests.testing.values.controllers import ACKNOWLEDGING, CONTROLLERS, Controller
from wcet.platforms.controller import read_controller
from wcet.platforms.controller_templates import controller_keys
from wcet.platforms.toml_table import TomlTable

__all__ = [
    "BASE",
    "COUNTING",
    "DISABLING",
    "INPUTS",
    "REMEMBERING",
    "SHAPES",
    "TESTS",
    "Arrived",
    "Subject",
    "executions",
    "fits",
    "paths",
    "predicate",
]

BASE = 0xF800_0000
STACK, RETURN = 0x4000_0000, 0xF000_0000
STEPS = 2000

# name -> controller, code
TESTS: dict[str, tuple[str, str]] = {
    "two words": ("avic", "ldr r0, [r5, #0x58]\n ldr r1, [r5, #0x5c]\n orr r0, r0, r1\n bx lr"),
    "a byte of a number": ("avic", """
        ldr r1, [r5, #0x40]\n uxtb r1, r1, ror #16\n cmp r1, #255\n movne r0, #1\n moveq r0, #0
        bx lr"""),
    "a signed half": ("avic", """
        ldr r1, [r5, #0x40]\n asr r1, r1, #16\n cmn r1, #1\n movne r0, #1\n moveq r0, #0
        bx lr"""),
    "a count, then a number": ("avic", """
        ldr r0, [r5, #0x58]\n ldr r1, [r5, #0x5c]\n orrs r0, r0, r1\n bxeq lr
        ldr r1, [r5, #0x40]\n lsr r1, r1, #16\n lsl r1, r1, #24\n cmp r1, #0xff000000
        moveq r0, #0\n bx lr"""),
    "raw bits": ("avic", """
        ldr r0, [r5, #0x48]\n ldr r1, [r5, #0x10]\n and r0, r0, r1
        ldr r1, [r5, #0x4c]\n ldr r2, [r5, #0x14]\n and r1, r1, r2\n orr r0, r0, r1\n bx lr"""),
    "a masked number": ("gic", """
        ldr r1, [r5, #0x18]\n ldr r2, =1023\n and r1, r1, r2\n subs r0, r1, r2\n movne r0, #1
        bx lr"""),
    "a shifted number": ("gic", """
        ldr r1, [r5, #0x18]\n lsl r1, r1, #22\n cmn r1, #0x400000\n moveq r0, #0\n movne r0, #1
        bx lr"""),
    "a number below a limit": ("gic", """
        ldr r1, [r5, #0x18]\n lsl r1, r1, #22\n lsr r1, r1, #22\n cmp r1, #1020
        movlo r0, #1\n movhs r0, #0
        bx lr"""),
    "a number, then its bit": ("omap3", """
        ldr r1, [r5, #0x40]\n bics r2, r1, #0x7f\n movne r0, #0\n bxne lr
        lsr r2, r1, #5\n add r2, r5, r2, lsl #5\n ldr r2, [r2, #0x98]\n and r1, r1, #31
        mov r0, #1\n ands r0, r0, r2, lsr r1\n bx lr"""),
    "any of three words": ("omap3", """
        ldr r0, [r5, #0x98]\n ldr r1, [r5, #0xb8]\n orr r0, r0, r1\n ldr r1, [r5, #0xd8]
        orr r0, r0, r1\n bx lr"""),
    "a number times four": ("a10", "ldr r0, [r5]\n lsr r0, r0, #2\n bx lr"),
    "raw bits, enabled and not masked": ("a10", """
        add r1, r5, #0x10\n ldm r1, {r0, r2, r3}
        ldr r1, [r5, #0x40]\n and r0, r0, r1\n ldr r1, [r5, #0x50]\n bic r0, r0, r1
        ldr r1, [r5, #0x44]\n and r2, r2, r1\n ldr r1, [r5, #0x54]\n bic r2, r2, r1
        ldr r1, [r5, #0x48]\n and r3, r3, r1\n ldr r1, [r5, #0x58]\n bic r3, r3, r1
        orr r0, r0, r2\n orr r0, r0, r3\n bx lr"""),
    "one word": ("pl190", "ldr r0, [r5]\n bx lr"),
    "some of its bits": ("bcm2835", "ldr r0, [r5, #0x200]\n lsl r0, r0, #11\n bx lr"),
    "any of three": ("bcm2835", """
        ldr r0, [r5, #0x204]\n ldr r1, [r5, #0x208]\n orr r0, r0, r1\n ldr r1, [r5, #0x200]
        and r1, r1, #255\n orrs r0, r0, r1\n ldr r1, [r5, #0x200]\n orr r0, r0, r1\n bx lr"""),
}  # fmt: skip
# Tests by a load that acknowledges, whose answer a word keeps, 255 if there is none.
REMEMBERING = {
    "in conditional instructions": """
        ldr r1, =answer\n ldr r0, [r1]\n cmp r0, #255
        ldreq r0, [r5, #0x40]\n lsreq r0, r0, #16\n uxtbeq r0, r0\n streq r0, [r1]
        subs r0, r0, #255\n movne r0, #1\n lsl r0, r0, #2\n bx lr""",
    "in branches, and read again": """
        ldr r1, =answer\n ldr r0, [r1]\n cmp r0, #255\n bne kept
        ldr r2, [r5, #0x40]\n lsr r2, r2, #16\n uxtb r2, r2\n str r2, [r1]
kept:   ldr r1, =answer\n ldr r0, [r1]\n subs r0, r0, #255\n movne r0, #1\n bx lr""",
    "in a function of its own": """
        push {r4, lr}\n bl active\n subs r0, r0, #255\n movne r0, #1\n pop {r4, pc}
active: ldr r1, =answer\n ldr r0, [r1]\n cmp r0, #255\n bxne lr
        ldr r0, [r5, #0x40]\n lsr r0, r0, #16\n and r0, r0, #255\n str r0, [r1]\n bx lr""",
    "as a flag of its own": """
        ldr r1, =answer\n ldr r0, [r1]\n cmp r0, #1\n bxeq lr
        ldr r2, [r5, #0x40]\n asr r2, r2, #16\n cmn r2, #1\n moveq r0, #0\n bxeq lr
        mov r0, #1\n str r0, [r1]\n bx lr""",
    "after a count": """
        ldr r1, =answer\n ldr r0, [r1]\n cmp r0, #255\n movne r0, #1\n bxne lr
        ldr r0, [r5, #0x58]\n ldr r2, [r5, #0x5c]\n orrs r0, r0, r2\n bxeq lr
        ldr r0, [r5, #0x40]\n lsr r0, r0, #16\n uxtb r0, r0\n str r0, [r1]
        subs r0, r0, #255\n movne r0, #1\n bx lr""",
}  # fmt: skip
# Functions that count in a word, and test only when the count reaches 3: 0 before that.
COUNTING = {
    "a store in each branch": """
        ldr r1, =work_done\n ldr r2, [r1]\n add r2, r2, #1\n cmp r2, #2\n bhi due
        mov r0, #0\n str r2, [r1]\n bx lr
due:    mov r0, #0\n str r0, [r1]\n TEST""",
    "stored, then loaded again": """
        ldr r1, =work_done\n ldr r2, [r1]\n add r2, r2, #1\n str r2, [r1]
        nop\n ldr r1, =work_done\n ldr r2, [r1]\n cmp r2, #3\n bhs due\n mov r0, #0\n bx lr
due:    mov r0, #0\n str r0, [r1]\n TEST""",
    "in a function of its own": """
        push {r4, lr}\n bl count\n cmp r0, #0\n popeq {r4, pc}\n pop {r4, lr}\n TEST
count:  ldr r1, =work_done\n ldr r2, [r1]\n add r2, r2, #1\n cmp r2, #3
        movlo r0, #0\n strlo r2, [r1]\n bxlo lr
        mov r0, #0\n str r0, [r1]\n mov r0, #1\n bx lr""",
}  # fmt: skip
SHAPES = {
    "a loop": """
chunk:  bl   work
        bl   test
        cmp  r0, #0
        bne  done
        subs r4, r4, #1
        bne  chunk
""",
    "a test before the work, and a flag": """
chunk:  bl   test
        mov  r6, r0
        add  r7, r7, #1
        cmp  r4, #2
        beq  flag
        add  r7, r7, #2
flag:   cmp  r6, #0
        bne  done
        bl   work
        subs r4, r4, #1
        bne  chunk
        bl   work
""",
    "nested, and one after the other": """
        mov  r7, r4
outer:  mov  r6, #2
chunk:  bl   work
        bl   test
        cmp  r0, #0
        bne  done
        subs r6, r6, #1
        bne  chunk
        subs r7, r7, #1
        bne  outer
again:  bl   test
        cmp  r0, #0
        bne  done
        subs r4, r4, #1
        bne  again
""",
}
# The work disables one line, and the operation disables another when it has seen an interrupt: the
# one of which it may know. Line 31 is enabled again.
DISABLING = {
    "a disabled line": """
chunk:  bl   work
        mov  r3, #32
        str  r3, [r5, #0x0c]
        bl   test
        cmp  r0, #0
        bne  seen
        subs r4, r4, #1
        bne  chunk
        b    done
seen:   mov  r3, #63
        str  r3, [r5, #0x0c]
        bl   test
        cmp  r0, #0
        addne r7, r7, #1
        bne  done
        bl   work
""",
    "a line that is enabled again": """
chunk:  bl   work
        mov  r3, #32
        str  r3, [r5, #0x0c]
        cmp  r4, #1
        nop
        mov  r3, #32
        str  r3, [r5, #0x08]
        bl   test
        cmp  r0, #0
        bne  done
        subs r4, r4, #1
        bne  chunk
""",
}
PROGRAM = """
main:   push {{r4, r5, r6, r7, r8, lr}}
        mov  r4, r0
        ldr  r5, ={base:#x}
{shape}
done:   pop  {{r4, r5, r6, r7, r8, pc}}
        .ltorg
work:   mov  r3, #2
word:   subs r3, r3, #1
        bne  word
        bx   lr
test:   {test}
        .ltorg
{data}
"""
INPUTS = range(1, 4)


def predicate(name: str, *, acknowledging: bool = False) -> PendingPredicate:
    """The predicate of a shipped controller at ``BASE``, with or without effects of loads."""
    known, _ = read_controller(TomlTable(controller_keys(f"{name}@{BASE:#x}"), name))
    return known if acknowledging else replace(known, loads=frozenset())


@dataclass(frozen=True)
class Subject:
    """A kernel with its segments."""

    image: Image
    controller: Callable[[], Controller]
    values: ValueResults
    segments: tuple[PendingSegment, ...]

    @staticmethod
    def of(controller: str, test: str, shape: str, work: int = 0) -> Subject:
        """The kernel of a test in a shape; ``work``: the word of a counter before."""
        data = f".data\nwork_done: .word {work}\n.previous"
        image = assemble(PROGRAM.format(base=BASE, shape=shape, test=test, data=data))
        return Subject.made(image, CONTROLLERS[controller], predicate(controller))

    @staticmethod
    def remembering(test: str, shape: str, answer: int, work: int = 0) -> Subject:
        """The kernel of a test that acknowledges, and keeps its answer in a word.

        ``work``: what a counter holds before.
        """
        data = f".data\nanswer: .word {answer}\nwork_done: .word {work}\n.previous"
        image = assemble(PROGRAM.format(base=BASE, shape=shape, test=test, data=data))
        return Subject.made(image, ACKNOWLEDGING["avic"], predicate("avic", acknowledging=True))

    @staticmethod
    def made(
        image: Image, controller: Callable[[], Controller], known: PendingPredicate
    ) -> Subject:
        """The kernel of an image."""
        symbol = image.symbol("main")
        assert symbol is not None
        plain = expand(extract(image, [symbol.addr]), symbol.addr, image)
        first = analyse(plain, image)
        graph = without_edges(plain, first.dead_edges, image)
        values = first.within(graph) or analyse(graph, image)
        tests = find_pending_tests(values, known)
        found = () if tests is None else tuple(segments(values, tests, image))
        return Subject(image, controller, values, found)

    def turning(self, *labels: str) -> set[str]:
        """Those of ``labels`` that are headers of loops in a segment."""
        at = {symbol.addr: name for name in labels if (symbol := self.image.symbol(name))}
        graphs = [segment.graph for segment in self.segments]
        headers = {g.nodes[loop.header].block.addr for g in graphs for loop in g.loops}
        return {name for addr, name in at.items() if addr in headers}


@dataclass
class _Memory:
    """Memory with a controller at ``BASE``, whose loads are noted."""

    image: Image
    controller: Controller
    memory: ByteMemory = field(init=False)
    loads: int = 0

    def __post_init__(self) -> None:
        self.memory = ByteMemory(background=lambda addr: (self.image.read(addr, 1) or b"\0")[0])

    def load(self, addr: int, size: int) -> int:
        if not BASE <= addr < BASE + 0x1000:
            return self.memory.load(addr, size)
        assert size == 4
        self.loads += 1
        return self.controller.load(addr - BASE)

    def store(self, addr: int, size: int, value: int) -> None:
        if not BASE <= addr < BASE + 0x1000:
            self.memory.store(addr, size, value)
        else:
            assert size == 4
            self.controller.store(addr - BASE, value)


@dataclass
class Arrived:
    """An execution in which a line arrived before instruction ``step``, or never.

    ``nodes`` and, of each, the loads of the controller by its end; ``before``: by the arrival.
    ``withdrawn``: the line was disabled before a load could show it; it arrives anew when it is
    enabled again.
    """

    step: int
    nodes: list[int]
    loads: list[int]
    before: int | None = None
    steps: int = 0
    withdrawn: bool = False


def executions(
    subject: Subject, lines: tuple[int, ...], inputs: Iterable[int] = INPUTS
) -> Iterator[Arrived]:
    """All executions: every input, every line, every arrival, and none."""
    for given in inputs:
        for line in lines:
            step = 0
            while True:
                ran = execute(subject, given, line, step)
                yield ran
                if ran.before is None and not ran.withdrawn:
                    break
                step += 1


def execute(subject: Subject, given: int, line: int, arrives: int) -> Arrived:
    """One execution; ``line`` arrives before instruction ``arrives`` if it comes to that."""
    graph = subject.values.graph
    controller = subject.controller()
    memory = _Memory(subject.image, controller)
    machine = ConcreteMachine(memory, lambda op: 0)
    machine.registers[0] = given
    machine.registers[13:15] = [STACK, RETURN]
    ran = Arrived(arrives, [graph.entry], [])
    node = graph.entry
    while True:
        for insn in graph.nodes[node].block.insns:
            if ran.steps == arrives:
                controller.arrive(line)
            if ran.steps >= arrives:
                _note_arrival(ran, memory, line)
            ran.steps += 1
            assert ran.steps < STEPS, "the program does not end"
            machine.step(insn)
        ran.loads.append(memory.loads)
        pc = machine.registers[15]
        if pc == RETURN & ~3:
            return ran
        node = next(
            graph.edges[e].dst
            for e in graph.successors[node]
            if graph.nodes[graph.edges[e].dst].block.addr == pc
        )
        ran.nodes.append(node)


def _note_arrival(ran: Arrived, memory: _Memory, line: int) -> None:
    """The interrupt arrives, if it is enabled; or it is withdrawn before a load could show it."""
    disabled = line in memory.controller.disabled
    if not disabled and ran.before is None:
        ran.before, ran.withdrawn = memory.loads, False
    elif disabled and ran.before in (None, memory.loads):
        ran.before, ran.withdrawn = None, True


def fits(subject: Subject, ran: Arrived) -> list[int | None]:
    """The starts of the segments of which the execution, from the start on, is a path."""
    return [segment.start for segment, _ in paths(subject, ran)]


def paths(subject: Subject, ran: Arrived) -> Iterator[tuple[PendingSegment, list[int]]]:
    """The segments of which the execution, from the start on, is a path, with its edges.

    From its entry on, or from a node on that read the controller before the arrival.
    """
    assert ran.before is not None
    begins = [0] + [
        i
        for i, (was, now) in enumerate(zip([0, *ran.loads], ran.loads, strict=False))
        if was < now and was < ran.before
    ]
    for segment in subject.segments:
        for begin in begins:
            found = _path(segment, ran.nodes[begin:])
            if found is not None:
                yield segment, found


def _path(segment: PendingSegment, nodes: list[int]) -> list[int] | None:
    """The edges of a path through ``nodes`` of the whole graph; None if there is none."""
    graph = segment.graph
    if segment.nodes[graph.entry] != nodes[0]:
        return None
    taken: dict[int, list[int]] = {graph.entry: []}
    for node in nodes[1:]:
        taken = {
            graph.edges[e].dst: [*edges, e]
            for n, edges in taken.items()
            for e in graph.successors[n]
            if segment.nodes[graph.edges[e].dst] == node
        }
    ends = [edges for n, edges in taken.items() if n in graph.exits]
    return ends[0] if ends else None
