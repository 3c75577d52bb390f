"""Random nests of loops in assembly that move positions, in registers and in words of memory.

Positions are advanced, set back, left alone under a condition, moved by a varying step, copied,
spilled, hit by stores of all widths, at known addresses and through pointers, and wrap around. The
loops are counted, too, so that every nest has a bound, and the positions can only lower its totals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from random import Random

from loopbounds.execution.counts import ExecutionCounts
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.loopbounds.counting import Program

__all__ = ["BASE", "FIELD_FLAGS", "MEMORY", "broken_counts", "moved_fields", "moved_words"]

BASE = 0x60000000  # of the bytes that decide; words are a KiB above it
CODE_END = 0xFFFFF  # of code and globals, from address 0 on
MEMORY = MemoryMap(
    tuple(
        MemoryRegion("", low, high, RegionKind.CACHED, low, fixed=True)
        for low, high in ((0, CODE_END), (BASE, BASE + 0xFFF))
    )
)
# r0: a byte; r1, r2, r10: positions; r3, r5, r9: free; r4, r8, r11: counters; r6, r7: bases.
REGISTER_MOVES = (
    "add {r}, {r}, #{k}", "add {r}, {r}, #{k}", "sub {r}, {r}, #{k}", "subs {r}, {r}, #{k}",
    "mov r3, {r}\nadd {r}, r3, #{k}", "cmp r0, #{c}\naddhi {r}, {r}, #{k}",
    "cmp r0, #{c}\naddhi {r}, {r}, #{k}\naddls {r}, {r}, #{j}",
    "tst r0, #1\naddne {r}, {r}, #{k}\nsubeq {r}, {r}, #{j}", "add {r}, {r}, r0, lsr #6",
    "sub {r}, {r}, r0, lsr #7", "mov {r}, {q}", "rsb {r}, {r}, #{c}", "mov {r}, #{c}",
    "add {r}, {r}, #0x40000000", "add {r}, {r}, #0x80000000", "uxtb {r}, {r}", "bic {r}, {r}, #1",
    "cmp r0, #{c}\nmovhi {r}, #{j}", "push {{{r}}}\nstr r0, [sp]\npop {{{r}}}",
    "push {{r1, r2}}\npop {{r2, r3}}\nmov r1, r3",
    "push {{r1, r2}}\nldr {r}, [sp, #4]\nadd sp, sp, #8",
    "push {{{r}}}\nstrb r0, [sp, #{b}]\npop {{{r}}}",
    "push {{{r}}}\nstr r0, [sp, #-2]\npop {{{r}}}",
    "ldrb r0, [r10], #{k}", "ldrb r0, [r10, #{k}]!", "ldrb r0, [r10], #-{k}", "mov r10, r6",
    "ldr {r}, {w}\nadd {r}, {r}, #{k}", "swp {r}, {q}, [r7]",
)  # fmt: skip
WORD_MOVES = (
    "ldr r3, {w}\nadd r3, r3, #{k}\nstr r3, {w}", "ldr r3, {w}\nadd r3, r3, #{k}\nstr r3, {w}",
    "ldr r3, {w}\nadd r3, r3, #{k}\nstr r3, {w}", "ldr r3, {w}\nsub r3, r3, #{k}\nstr r3, {w}",
    "ldr r3, {w}\ncmp r0, #{c}\naddhi r3, r3, #{k}\nstr r3, {w}",
    "ldr r3, {w}\ncmp r0, #{c}\naddhi r3, r3, #{k}\nstrhi r3, {w}",
    "ldr r3, {w}\ncmp r0, #{c}\naddhi r3, r3, #{k}\naddls r3, r3, #{j}\nstr r3, {w}",
    "ldr r3, {w}\nadd r3, r3, #{k}\ncmp r0, #{c}\nstrne r3, {w}", "cmp r0, #{c}\nstrhi {r}, {w}",
    "ldr r3, {w}\nadd r3, r3, r0, lsr #6\nstr r3, {w}", "str {r}, {w}", "ldr {r}, {w}",
    "ldr r3, {w}\nldr r9, {v}\nstr r9, {w}\nstr r3, {v}", "ldr r3, {w}\nstr r3, {v}",
    "mov r3, #{c}\nstr r3, {w}", "strb r0, {wb}", "strh r0, {wh}", "str r0, {wb}",
    "ldrb r3, {wb}\nadd r3, r3, #{k}\nstrb r3, {wb}",
    "ldr r3, {wb}\nadd r3, r3, #{k}\nstr r3, {wb}",
    "add r5, {base}, #4\nstm r5, {{r1, r2}}", "add r5, {base}, #12\nstmdb r5!, {{r1, r2}}",
    "add r5, {base}, #8\nstmda r5, {{r0, {r}}}", "stmib {base}, {{r0, r1}}",
    "add r5, {base}, #12\nldmdb r5, {{r1, r2}}", "strd r2, r3, [{base}, #8]",
    "ldrd r2, r3, [{base}, #8]\nadd r2, r2, #{k}\nstrd r2, r3, [{base}, #8]",
    "and r5, r0, #4\nadd r5, r5, {base}\nstr {r}, [r5]", "and r5, r0, #7\nstrb r0, [{base}, r5]",
    "and r5, r0, #8\nadd r5, {base}, r5\nldr r3, [r5]\nadd r3, r3, #{k}\nstr r3, [r5]",
    "add r5, {base}, #{o}\nldrex r3, [r5]\nadd r3, r3, #{k}\nstrex r9, r3, [r5]",
    "add r5, {base}, #{o}\nswp r3, {r}, [r5]", "ldr r3, {w}\nadd r3, r3, #0x40000000\nstr r3, {w}",
    "str r1, [r7, #-4]!\nadd r7, r7, #4", "ldr r3, [{base}, #{o}]!\nsub {base}, {base}, #{o}",
)  # fmt: skip
LEAVES = (
    "cmp r0, #{c}\nbeq 3f",
    "cmp r0, #{c}\nbhi 4f",
    "tst r0, #2\nbne 1b",
    "cmp {r}, #{m}\nbgt 3f",
)
CONDITIONS = ("cc", "ls", "lt", "le", "hi", "cs", "ne", "gt", "ge", "mi", "pl")
STARTS = ("#0", "#0", "#3", "#20", "#40", "#0xffffffef", "#0x7ffffff0", "#0xc0000000")
FIELD_FLAGS = ("-fno-tree-loop-distribute-patterns", "-fno-builtin", "-w")
FIELDS = f"""
#define data ((const volatile unsigned char *){BASE:#x})
struct cursor {{ unsigned at, size; int left; unsigned char kind; }};
static struct cursor one, two, *both[2] = {{ &one, &two }};
"""
# In each iteration of a nest; c and d are structures, global or in the frame.
FIELD_MOVES = (
    "{c}.at++;", "{c}.at += {k};", "{c}.left -= {k};", "if (data[{c}.at & 63] & 1) {c}.at += {k};",
    "{c}.at += data[i & 63] >> 6;", "{c}.at -= {k};", "if (data[i] > {m}) {c}.at = {j};",
    "((unsigned char *)&{c}.at)[{b}] = data[i];", "((unsigned short *)&{c}.at)[{b} & 1] += {k};",
    "{c} = {d};", "both[data[i] & 1]->at += {k};", "both[data[i] & 1]->left = {c}.left;",
    "{c}.size -= {k};", "{c}.at = {d}.at + {k};", "{c}.kind += {k};",
    "{c}.left += (int){d}.at >> 1;",
    "{c}.at += 0x40000000u;", "*(unsigned *)((char *)&{c} + (data[i] & 12)) = {d}.at;",
    "if ({c}.left > {m}) {{ {c}.left -= {k}; {c}.at++; }}", "if (data[i] == {m}) break;",
)  # fmt: skip
FIELD_CONDITIONS = (
    "{c}.at < {c}.size", "{c}.at < {m}", "{c}.at != {m}", "{c}.left > {j}", "{c}.left >= {j}",
    "{c}.at < {d}.at", "(int){c}.at < (int){m}", "data[{c}.at & 63] > {m}", "{c}.kind < {m}",
    "data[{c}.at & 63] == data[i]",
)  # fmt: skip


def moved_fields(random: Random) -> str:
    """A C program with ``main``, in which nests move the positions of structures."""
    names = random.sample(["one", "two", "local"], 2)

    def filled(template: str) -> str:
        c, d = names if random.random() < 0.8 else names[::-1]
        numbers = {"k": random.choice([1, 1, 2, 3]), "j": random.choice([0, 1, 5])}
        byte, most = random.randrange(4), random.choice([3, 9, 20, 60, 77])
        return template.format(c=c, d=d, b=byte, m=most, **numbers)

    def moves(most: int) -> str:
        chosen = random.choices(FIELD_MOVES[:3], k=1) if random.random() < 0.7 else []
        chosen += random.sample(FIELD_MOVES, random.randint(0, most))
        return " ".join(map(filled, random.sample(chosen, len(chosen))))

    conditions = " && ".join(map(filled, random.sample(FIELD_CONDITIONS, random.randint(1, 2))))
    starts = " ".join(
        f"{name}.at = {random.choice(['0', '2', '30', '0xfffffff0u'])}; {name}.kind = 0;"
        f" {name}.size = {random.choice([8, 30, 60])}; {name}.left = {random.randint(0, 40)};"
        for name in ("one", "two", "local")
    )
    inner = f"for (int k = 0; k < {random.randint(3, 9)} && {conditions}; k++) {{ {moves(2)} }}"
    outer = f"for (int i = 0; i < {random.randint(2, 9)}; i++) {{ {moves(1)} {inner} {moves(1)} }}"
    result = "one.at + two.left + local.at"
    return f"{FIELDS}int main(void) {{ struct cursor local; {starts} {outer} return {result}; }}\n"


class _Writer:
    """The text of one function."""

    def __init__(self, random: Random, number: int) -> None:
        self._random, self._number = random, number
        self._base = random.choice(["r7", "sp"])  # the words are mostly there
        self._helped = False

    def _filled(self, template: str) -> str:
        random = self._random
        base = self._base if random.random() < 0.9 else random.choice(["r7", "sp"])
        o, other, byte = random.choice([0, 4, 8]), random.choice([0, 4, 8, 12]), random.randrange(4)
        return template.format(
            r=random.choice(["r1", "r1", "r2"]), q=random.choice(["r1", "r2"]), base=base, o=o,
            w=f"[{base}, #{o}]", v=f"[{base}, #{other}]", wb=f"[{base}, #{o + byte}]",
            wh=f"[{base}, #{o + 2 * (byte & 1)}]", b=byte, k=random.choice([1, 1, 2, 3, 4]),
            j=random.choice([0, 1, 2, 5]), c=random.choice([0, 1, 2, 60, 77, 200]),
            m=random.choice([5, 12, 30, 60]),
        )  # fmt: skip

    def _moves(self, most: int) -> str:
        random, found = self._random, list[str]()
        for _ in range(random.randint(0, most)):
            kind = random.random()
            table: tuple[str, ...] = REGISTER_MOVES if kind < 0.4 else WORD_MOVES
            if kind < 0.5:  # the plain step, mostly
                table = table[:3]
            found.append(self._filled(random.choice(table)))
        if not self._helped and random.random() < 0.1:
            self._helped = True
            found.append(f"bl g{self._number}")
        found.append("and r3, r1, #63\nldrb r0, [r6, r3]")
        return "\n".join(found)

    def _again(self, label: str) -> str:
        """A condition to go on that a position decides."""
        random, condition = self._random, self._random.choice(CONDITIONS)
        load = self._filled("ldr r3, {w}") if random.random() < 0.5 else "mov r3, r1"
        limit = random.choice([8, 12, 24, 60, 128])
        return f"{load}\ncmp r3, #{limit}\nb{condition} {label}"

    def text(self) -> str:
        """The function, and the one that it may call."""
        random, number = self._random, self._number
        starts = "\n".join(
            f"mov r3, {random.choice(STARTS)}\nstr r3, [{base}, #{at}]"
            for base in ("r7", "sp")
            for at in (0, 4, 8, 12)
        )
        inner = self._moves(3)
        if random.random() < 0.3:
            inner += f"\nmov r11, #{random.randint(2, 6)}\n5: subs r11, r11, #1\nbmi 6f\n"
            inner += f"{self._moves(2)}\n{self._again('5b')}\n6:"
        if random.random() < 0.5:
            inner += "\n" + self._filled(random.choice(LEAVES))
        before, after = self._moves(2), self._moves(2)
        enters = "b 2f" if random.random() < 0.05 else ""
        helper = ""
        if self._helped:
            helper = (
                f"g{number}: push {{r4, lr}}\n{self._filled(random.choice(REGISTER_MOVES[:3]))}"
            )
            helper += "\nldr r3, [r7]\nadd r3, r3, #1\nstr r3, [r7]\npop {r4, pc}\n"
            helper += f".type g{number}, %function\n"
        lines = [
            f".global f{number}\n.type f{number}, %function\nf{number}: push {{r4-r11, lr}}",
            f"sub sp, sp, #20\nldr r6, ={BASE}\nldr r7, ={BASE + 0x400}\nmov r10, r6", starts,
            f"mov r1, {random.choice(STARTS)}\nmov r2, {random.choice(STARTS)}\nmov r0, #0",
            f"mov r8, #{random.randint(2, 9)}\nmov r4, #{random.randint(2, 9)}\n{enters}",
            f"1: subs r8, r8, #1\nbmi 4f\n{before}\nmov r4, #{random.randint(3, 9)}",
            f"2: subs r4, r4, #1\nbmi 3f\n{inner}\n{self._again('2b')}\n3: {after}\nb 1b",
            f"4: add sp, sp, #20\npop {{r4-r11, pc}}\n.ltorg\n{helper}",
        ]  # fmt: skip
        return "\n".join(lines)


def moved_words(random: Random, number: int) -> str:
    """An assembly text with functions ``f0`` to ``f{number - 1}``; ``main`` is the first one."""
    functions = "\n".join(_Writer(random, at).text() for at in range(number))
    return f".syntax unified\n.arch armv7-a\n.global main\n.set main, f0\n{functions}"


def broken_counts(code: Program, found: ExecutionCounts, content: bytes) -> list[str]:
    """The counts that an execution exceeds, with these 256 bytes everywhere in memory at first.

    A block of a loop with two entries is several nodes; only the sum of their counts is compared.
    """

    def background(address: int) -> int:
        return content[address & 255]

    nodes = code.graph.nodes
    places = [node.block.addr for node in nodes]
    path = code.path((), background)
    executed = Counter(path)
    broken = []
    for loop in code.graph.loops:
        if places.count(places[loop.header]) > 1:
            continue
        limits = [("loop", loop.index, found.most[loop.index])]
        if loop.parent is not None:
            limits.append(("total", loop.parent, found.totals[loop.index]))
        for what, inside, most in limits:
            body = {i.addr for n in code.graph.loops[inside].nodes for i in nodes[n].block.insns}
            seen = _most_inside(path, places[loop.header], body)
            if seen > most:
                broken.append(f"{what} {places[loop.header]:#x}: {seen} > {most}")
    ways = Counter({places[code.graph.entry]: 1})
    for edge, most in zip(code.graph.edges, found.edges, strict=True):
        ways[places[edge.dst]] += most
    many = [place for place in set(places) if executed[place] > ways[place]]
    return broken + [f"block {at:#x}: {executed[at]} > {ways[at]}" for at in many]


def _most_inside(path: Sequence[int], header: int, body: Set[int]) -> int:
    """The most executions of a header until the path leaves a loop."""
    most = running = 0
    for at in path:
        if at == header:
            running += 1
            most = max(most, running)
        elif at not in body:
            running = 0
    return most
