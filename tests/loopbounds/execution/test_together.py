"""All executions followed together: no execution counts more, and nests have their totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest

from loopbounds.budgets import table
from loopbounds.execution.counts import ExecutionCounts, UnfinishedCounts
from loopbounds.execution.deciding import deciding_registers
from loopbounds.execution.together import executed_together
from quoll.arm.insn import LR
from quoll.cfg.cfg import EdgeKind
from quoll.image.memory_map import MemoryMap, MemoryRegion, RegionKind
from tests.testing.harness.cases import cases
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import build

FLAGS = ("-fno-tree-loop-distribute-patterns", "-fno-unroll-loops")
DATA = "#define data ((volatile unsigned char *)0x60000000)\n"
OUTER = (
    "for (int a = 1; a < {n}; a *= 2)", "for (int a = {n}; a; a /= 2)",
    "for (int a = 1; a <= {m}; a++)", "for (int a = {m}; a > 0; a -= 2)",
)  # fmt: skip
INNER = (
    "for (int b = 0; b < {n}; b += 2 * a)", "for (int b = a; b < {m}; b++)",
    "for (int b = a; b < {n}; b += a)", "for (int b = {m}; b >= a; b--)",
    "for (int b = 1; b < a; b *= 3)", "for (int b = 0; b < a && b * b < {n}; b++)",
)  # fmt: skip
INNERMOST = (
    "for (int c = b; c < b + a; c++)", "for (int c = b; c >= a; c -= a)",
    "for (int c = 0; c < a; c++)", "for (int c = 1; c <= b; c *= 2)",
)  # fmt: skip
TAIL = ("", "if (data[b & 63] & 1) break;", "if (data[a & 63] > s) s += b; else s ^= 3;")
MERGE = """int main(void) {
    int s = 0;
    for (int width = 1; width < 64; width *= 2)
        for (int start = 0; start < 64; start += 2 * width)
            for (int k = start; k < start + 2 * width; k++) s += data[k];
    return s;
}
"""
MOVING = """int main(void) {
    int s = 0;
    for (int i = 0; i < 12; i++) {
        while (i < 12 && data[i]) i++;
        for (int k = i; k < 12; k++) s += data[k];
    }
    return s;
}
"""
STATES = """int main(void) {
    int mode = 0, left = 0, s = 0, odd = 0;
    for (int i = 0; i < 30; i++) {
        int c = data[i];
        odd += c & 1;
        if (mode == 0) { if (c > 9) { mode = 1; left = 3; } }
        else if (mode == 1) { s ^= c; if (--left == 0) mode = 2; }
        else { for (int k = 0; k < 8; k++) s += k; mode = 0; }
    }
    return s + odd;
}
"""
BASE = 0x60000000
CODE = f""".syntax unified
.global main
.type main, %function
main: ldr r6, ={BASE}
    ldr r7, =one
    ldr r8, =other
    mov r4, #12
    mov r1, #0
1:  ldrb r0, [r6], #1
    tst r0, #1
    moveq r2, r7
    movne r2, r8
    ldrsb r1, [r2, r1]
    cmp r1, #0
    movlt r1, #0
    sublt r4, r4, #1
    cmp r4, #0
    bne 1b
    bx lr
    .ltorg
one: .byte 1, -1, -1, 3
other: .byte 2, -2, -1, 2
"""
# The exclusive store is made or not, and fails or not.
EXCLUSIVE = f""".syntax unified
.global main
.type main, %function
main: ldr r6, ={BASE}
    ldr r7, ={BASE + 64}
    ldrb r0, [r6]
    ldrb r5, [r6, #1]
    mov r1, #0
    mov r2, #2
    mov r3, #2
    mov r12, #0
    cmp r0, r5
    movhi r1, #3
    movcs r2, #1
    movne r3, #1
    strexhi r12, r0, [r7]
    add r4, r1, r2
    add r4, r4, r3
    add r4, r4, r12, lsl #3
    add r4, r4, #1
1:  subs r4, r4, #1
    bne 1b
    bx lr
    .ltorg
"""
# The greatest sum of r2 and r3, 12, needs the first condition and the opposite of the second.
CARRIED = (
    "movhi r2, #1; movls r2, #5; cmp r1, #60; movhi r3, #7; movls r3, #2",
    "movhi r2, #1; movls r2, #5; b 5f; 5: cmp r1, #60; moveq r5, #1; movhi r3, #7; movls r3, #2",
)
# r1 is any word when the nest begins, and in a range when its inner header is executed again.
UNKNOWN_AT_FIRST = """.syntax unified
.global main
.type main, %function
main: mov r2, #3
1:  mov r4, #20
2:  subs r4, r4, #1
    beq 3f
    cmp r1, #8
    bcs 4f
    add r1, r1, #1
    b 2b
3:  add r1, r1, #1
    subs r2, r2, #1
    bne 1b
4:  bx lr
"""
ENTERED_OFTEN = """int main(void) {
    int p = 0;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 5; k++)
            while (p < 3 && data[p] & 1) p++;
    return p;
}
"""
# Conditional instructions that no branch and no store depends on at once.
CHOOSING = (
    "cmp r0, #{m}; movgt r2, #{n}; movle r2, #2;", "cmp r0, #{m}; addhi r2, r2, #1;",
    "cmp r0, r1; movlt r2, #{n}; addlt r3, r3, #1; movge r2, #1;",
    "tst r0, #{n}; moveq r2, #3; movne r3, #1;", "cmp r0, #{m}; movls r0, #{n}; mov r2, r0;",
    "cmp r0, r1; movgt r3, r2; mov r2, #{n}; movle r2, #{m};",
    "subs r5, r0, r1; rsbmi r5, r5, #0; and r2, r5, #{n};",
    "cmp r0, r1; ldrblt r2, [r6, #{n}]; movge r2, #{m}; and r2, r2, #7;",
    "cmp r0, #{m}; cmpne r1, #{n}; moveq r2, #4; addne r2, r2, #1; and r2, r2, #15;",
)  # fmt: skip
RUNS = """int main(void) {
    int s = 0, i = 0;
    while (i < 40) {
        int c = data[i++];
        while (i < 40 && data[i] == c) i++;
        s += c;
    }
    return s;
}
"""
HALVES = """int main(void) {
    int s = 0, low = 0, high = 30;
    while (low < high) {
        while (low < high && data[low] < 50) low++;
        while (low < high && data[high] > 50) high--;
        low++;
        s ^= high;
    }
    return s;
}
"""
# Positions that grow or fall in nests; some are set back, or grow on one way only.
MOVED = (
    "i++; while (i < {m} && data[i & 63] < 60) i += {n};",
    "while (i < {m} && data[i & 63] > 60) {{ i++; if (data[i & 31] == 77) i++; }} i++;",
    "j = {m}; while (j > 0 && data[j] > 60) j -= {n}; i++;",
    "if (data[i & 63] & 1) i += 2; else i++; while (j < {m} && data[j] < 80) j++;",
    "for (int k = 0; k < {n}; k++) while (i < {m} && data[i + k & 63] & 1) i++; i++;",
    "while (i < {m} && data[i & 63] < 60) i++; i -= i > {n}; j++; if (j > {m}) break;",
    "do {{ i++; if (data[i & 63] == 255) i = {n}; }} while (i < {m} && data[i & 63]); "
    "if (++j > 9) break;",
)
STORING = f"""__attribute__((naked)) int main(unsigned a) {{
    asm("ldr r6, ={BASE}; mov r5, #5; str r5, [r6, #28]; and r4, r0, #1; add r4, r6, r4, lsl #4;"
        "STORE; ldr r1, [r6, #28]; 1: subs r1, r1, #1; bne 1b; bx lr; .ltorg");
}}
"""
RETURNING = """.syntax unified
main: push {r4, r5, lr}
    mov r5, r0
    mov r4, #3
1:  mov r0, r5
    bl early
    subs r4, r4, #1
    bne 1b
    pop {r4, r5, pc}
early: push {r4, lr}
    mov r4, r0
    cmp r4, #5
    popeq {r4, pc}
    mov r2, #2
2:  subs r2, r2, #1
    bne 2b
    pop {r4, pc}
.global main
.type main, %function
.type early, %function
"""
BEGINNING = """.syntax unified
main: cmp r1, #50
    bhi 9f
2:  add r1, r1, #1
    ldrb r0, [r6]
    cmp r1, #60
    bhi 9f
    cmp r0, #7
    beq 2b
    b main
9:  bx lr
.global main
.type main, %function
"""
INPUT = """int main(unsigned n) {
    int s = 0;
    for (unsigned i = 0; i < n; i++) s += data[i];
    return s;
}
"""

LIMITED = """int main(void) {
    int s = 0, n = data[0];
    if (n > 9) return 0;
    for (int i = 0; i < n; i++) s += data[i];
    return s;
}
"""
BOTH = """int main(void) {
    int s = 0, n = data[0] & 31, m = data[1] & 63;
    if (n < 8 && m < 12)
        for (int i = 0; i < n + m; i++) s += data[i];
    return s;
}
"""


# Loops whose last instructions all depend on the flag that decides the branch, as divisions have.
PREDICATED = (
    "cmp r1, #0x{m}000; cmpcc r1, r0; lslcc r1, r1, #{n}; lslcc r3, r3, #1; bcc 1b",
    "cmp r1, #0x{m}000; lslcc r1, r1, #{n}; addcc r3, r3, #1; bcc 1b",
    "cmp r0, r1; subcs r0, r0, r1; orrcs r2, r2, r3; cmp r0, #0; lsrsne r3, r3, #{n};"
    "lsrne r1, r1, #{n}; bne 1b",
    "subs r1, r1, #1; addne r2, r2, r1; strne r2, [sp, #-8]; bne 1b",
    "lsrs r0, r0, #{n}; addne r2, r2, #1; moveq r2, #0; bne 1b",
    "cmp r0, #{m}; subcs r0, r0, #{m}; addcs r2, r2, #1; movcc r3, #0; bcs 1b",
    "cmp r1, #0x{m}; subcs r2, sp, #8; strcs r0, [r2]; subs r1, r1, #1; bne 1b",
)
ADDRESSED = "cmp r0, #{m}; subne r2, sp, #8; strne r0, [r2]; subs r1, r1, #1; bne 1b"
DIVISION = """unsigned main(void) {{
    unsigned s = 0;
    for (int i = 1; i < 6; i++) s += data[{k}] * 77u / (i * {m} + (data[{j}] & 7));
    return s;
}}
"""


NO_BOUNDS: dict[int, int] = {}
COUNTED = (
    "for (unsigned i = 0; i < (data[{k}] & {m}); i++) s += i;",
    "n = 0; for (int i = 0; i < {m}; i++) if (data[i + {k}] > 60) n++;"
    "for (int i = 0; i < n; i++) s ^= data[i];",
    "for (unsigned v = data[{k}] * 1000u; v; v /= 10) s += v;",
    "for (n = data[{k}] & 31; n > 3; n -= 3) s += n;",
    "for (int i = data[{k}] & 15; i >= 0; i--) s += data[i];",
    "for (n = 0; n < {m} && data[n] < 70; n++) s++; while (n-- > 0) s *= 3;",
)  # fmt: skip


def nest(random: Random) -> str:
    """Two or three loops in each other, each limited by words of the outer ones."""
    given = {"n": random.choice([8, 13, 16, 24]), "m": random.randint(3, 11)}
    heads = [random.choice(OUTER), random.choice(INNER)]
    heads += [random.choice(INNERMOST)] * random.randint(0, 1)
    loops = "\n".join(head.format(**given) for head in heads)
    rest, work = random.choice(TAIL), "s += data[(a + b) & 63];"
    return (
        f"{DATA}unsigned main(void) {{ unsigned s = 0;\n{loops} {{ {work} {rest} }}\nreturn s; }}"
    )


def together(code: Program, bounds: Mapping[int, int] = NO_BOUNDS) -> ExecutionCounts | None:
    found = executed_together(code.graph, code.image, code.values, bounds)
    return found if isinstance(found, ExecutionCounts) else None


def unfinished(code: Program) -> UnfinishedCounts:
    found = executed_together(code.graph, code.image, code.values, {})
    assert isinstance(found, UnfinishedCounts)
    return found


def covers(code: Program, found: ExecutionCounts, seed: int) -> None:
    """No execution with some content of memory counts more, or less where it always counts that.

    A block of a loop with two entries is several nodes; only the sum of their counts is compared.
    """
    memory = bytes(Random(seed).choices((0, 1, 2, 77, 255), k=256))
    counts = code.counts((), lambda at: memory[at & 255])
    totals = code.totals((), lambda at: memory[at & 255])
    executed = code.executed((), lambda at: memory[at & 255])
    fewest = code.fewest((), lambda at: memory[at & 255])
    places = [node.block.addr for node in code.graph.nodes]
    for loop in code.graph.loops:
        header = places[loop.header]
        if places.count(header) > 1:
            continue
        assert counts[header] <= found.most[loop.index]
        assert totals.get(header, 0) <= found.totals[loop.index]
        if loop.index in found.always:
            assert fewest.get(header, found.most[loop.index]) == found.most[loop.index]
    ways = Counter({places[code.graph.entry]: 1})
    for edge, most in zip(code.graph.edges, found.edges, strict=True):
        ways[places[edge.dst]] += most
    assert all(executed[place] <= ways[place] for place in places)


@pytest.mark.parametrize("seed", range(cases(3)))
def test_no_execution_of_a_random_nest_counts_more(seed: int) -> None:
    random = Random(f"nests {seed}")
    code = load(build(nest(random), *FLAGS, optimise=random.choice(["-O1", "-O2", "-Os"])))
    found = together(code)
    assert found is not None
    for content in range(3):
        covers(code, found, content)


@pytest.mark.parametrize("seed", range(cases(4)))
def test_ranges_limit_loops(seed: int) -> None:
    """A word from memory is of a range, or counts what happens in a loop of known length."""
    random = Random(f"ranges {seed}")
    pieces = random.sample(COUNTED, 3)
    body = " ".join(p.format(k=random.randrange(9), m=random.randint(3, 15)) for p in pieces)
    source = f"{DATA}int main(void) {{ int s = 0, n; {body} return s; }}"
    code = load(build(source, *FLAGS, optimise=random.choice(["-O0", "-O1", "-O2"])))
    found = together(code)
    assert found is not None
    for content in range(3):
        covers(code, found, content)


@pytest.mark.parametrize("seed", range(cases(4)))
def test_instructions_that_depend_on_the_flag_of_the_branch(seed: int) -> None:
    """States differ by the flag: what the instructions do goes with the way that is taken."""
    random = Random(f"predicated {seed}")
    given = {"m": random.randint(1, 9), "n": random.randint(1, 4)}
    body = ""
    for piece in random.sample(PREDICATED, 3):
        start = f"ldrb r0, [r6, #{random.randrange(9)}]; ldrb r1, [r6, #{random.randrange(9)}];"
        body += f"{start} orr r1, r1, #1; mov r3, #{1 << random.randrange(9)}; mov r2, #0\n"
        body += f"1: {piece.format(**given)}\n"
    source = f".syntax unified\n.global main\n.type main, %function\nmain: ldr r6, ={BASE}\n"
    code = load(build(f"{source}{body}bx lr\n.ltorg\n", language="asm"))
    found = together(code)
    assert found is not None
    for content in range(6):
        covers(code, found, content)


def test_a_flag_that_decides_an_address_and_its_store() -> None:
    """Without the address the store is not made, so it does not hit any word."""
    start = f".syntax unified\n.global main\n.type main, %function\nmain: ldr r6, ={BASE}\n"
    body = f"ldrb r0, [r6]; mov r1, #9; mov r2, #0\n1: {ADDRESSED.format(m=3)}\nbx lr\n.ltorg\n"
    code = load(build(start + body, language="asm"))
    found = together(code)
    assert found is not None
    assert found.most == (9,)
    for content in range(3):
        covers(code, found, content)


@pytest.mark.parametrize("seed", range(cases(3)))
def test_the_division_of_the_library(seed: int) -> None:
    """It shifts the divisor up and down: its loops are bounded without a proof."""
    random = Random(f"division {seed}")
    given = {"k": random.randrange(9), "j": random.randrange(9), "m": random.randint(1, 300)}
    elf = build(DATA + DIVISION.format(**given), optimise="-O1", link=("-lgcc",))
    code = load(elf)
    found = together(code)
    assert found is not None
    for content in range(4):
        covers(code, found, content)


@pytest.mark.parametrize(("source", "most"), [(LIMITED, 10), (BOTH, 19)])
@pytest.mark.parametrize(("state", "level"), [("arm", "-O0"), ("thumb", "-O0"), ("arm", "-O2")])
def test_a_branch_limits_the_words_it_compares(
    source: str, most: int, state: str, level: str
) -> None:
    """In memory, too, and both words of ``cmp``, ``cmple``, ``bgt``."""
    code = load(build(DATA + source, *FLAGS, f"-m{state}", optimise=level))
    found = together(code)
    assert found is not None
    assert found.most == (most if level == "-O0" else most - 1,)  # tested first, or last
    for content in range(4):
        covers(code, found, content)


@pytest.mark.parametrize("states", [1, 64])
def test_joined_states_cover_more(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FOLLOWED_STATES", states)
    code = load(build(DATA + MOVING, *FLAGS, optimise="-O1"))
    found = together(code)
    assert found is not None
    covers(code, found, 1)


def test_a_width_that_doubles() -> None:
    """64 words are merged in each of six rounds, of 63 steps in all."""
    code = load(build(DATA + MERGE, *FLAGS, optimise="-O1"))
    found = together(code)
    assert found is not None
    assert not found.open
    innermost = max(code.graph.loops, key=lambda loop: code.graph.nodes[loop.header].block.addr)
    depth = {n: sum(n in loop.nodes for loop in code.graph.loops) for n in innermost.nodes}
    most = max(sum(found.edges[e] for e in code.graph.predecessors[n]) for n in depth)
    assert most <= 6 * 64 + 63
    covers(code, found, 0)


@pytest.mark.parametrize("state", ["arm", "thumb"])
def test_words_of_a_frame_tell_states_apart(state: str) -> None:
    """A machine needs five steps until its inner loop begins again, and keeps its mode in memory.

    The number of odd words is in memory, too; it decides nothing, and nothing depends on it.
    """
    code = load(build(DATA + STATES, *FLAGS, f"-m{state}", optimise="-O0"))
    found = together(code)
    assert found is not None
    assert sorted(found.most) == [9, 31]
    assert max(found.totals) == 30 // 5 * 9
    for content in range(3):
        covers(code, found, content)


def test_a_condition_that_chooses_a_table() -> None:
    """Two bits lead from the root of a tree to its leaves, which are negative, and back to it."""
    code = load(build(CODE, language="asm"))
    found = together(code)
    assert found is not None
    assert found.most == (24,)
    for content in range(3):
        covers(code, found, content)


def test_an_assumed_condition_is_not_the_one_of_an_exclusive_store() -> None:
    """Of r0 > r5, r1 + r2 + r3 are 5, and 8 more if the store fails."""
    code = load(build(EXCLUSIVE, language="asm"))
    found = together(code)
    assert found is None or found.most == (14,)


@pytest.mark.parametrize("seed", range(cases(6)))
def test_conditional_instructions_that_choose_words(seed: int) -> None:
    random = Random(f"choosing {seed}")
    body = "mov r2, #1; mov r3, #2\n"
    for number in range(random.randint(1, 3)):
        given = {"m": random.choice([0, 1, 2, 76, 77, 200]), "n": random.randint(1, 7)}
        pieces = " ".join(p.format(**given) for p in random.sample(CHOOSING, 2))
        body += f"ldrb r0, [r6, #{random.randrange(9)}]; ldrb r1, [r6, #{random.randrange(9)}]\n"
        body += f"{pieces}; add r2, r2, r3; and r2, r2, #31; orr r4, r2, #1\n"
        body += f"{number + 1}: subs r4, r4, #1; bne {number + 1}b\n"
    source = f".syntax unified\n.global main\n.type main, %function\nmain: ldr r6, ={BASE}\n"
    code = load(build(f"{source}{body}bx lr\n.ltorg\n", language="asm"))
    found = together(code)
    assert found is not None
    for content in range(8):
        covers(code, found, content)


@pytest.mark.parametrize(
    ("source", "most", "state", "level"),
    [
        *[(RUNS, 41, state, "-O0") for state in ("arm", "thumb")],
        *[(HALVES, 61, state, "-O0") for state in ("arm", "thumb")],
        *[(RUNS, 41, "arm", level) for level in ("-O1", "-Os")],
    ],
)
def test_a_position_that_moves_in_a_nest_limits_its_total(
    source: str, most: int, state: str, level: str
) -> None:
    """The inner loops execute as often as there are positions, and once for each entry."""
    code = load(build(DATA + source, *FLAGS, f"-m{state}", optimise=level))
    found = together(code)
    assert found is not None
    inner = [loop for loop in code.graph.loops if loop.parent is not None]
    assert inner
    assert all(found.totals[loop.index] <= most for loop in inner)
    for content in range(5):
        covers(code, found, content)


@pytest.mark.parametrize("seed", range(cases(6)))
def test_positions_that_move_in_random_nests(seed: int) -> None:
    random = Random(f"moved {seed}")
    given = {"m": random.randint(3, 20), "n": random.randint(1, 3)}
    body = " ".join(p.format(**given) for p in random.sample(MOVED, random.randint(1, 2)))
    limit = random.randint(5, 24)
    source = (
        f"int main(void) {{ int i = 0, j = 0; while (i < {limit}) {{ {body} }} return i + j; }}"
    )
    code = load(build(DATA + source, *FLAGS, optimise=random.choice(["-O0", "-O1", "-O2", "-Os"])))
    found = executed_together(code.graph, code.image, code.values, {})
    if isinstance(found, ExecutionCounts):
        for content in range(5):
            covers(code, found, content)


@pytest.mark.parametrize("text", CARRIED)
def test_an_assumed_condition_ends_where_flags_are_set(text: str) -> None:
    start = f".syntax unified\n.global main\n.type main, %function\nmain: ldr r6, ={BASE}\n"
    body = f"ldrb r0, [r6]; ldrb r1, [r6, #1]; cmp r0, #60; {text}; add r4, r2, r3\n"
    code = load(build(f"{start}{body}1: subs r4, r4, #1; bne 1b; bx lr\n.ltorg\n", language="asm"))
    found = together(code)
    assert found is not None
    assert found.most == (12,)


def test_a_position_that_is_unknown_at_first_limits_nothing() -> None:
    """From r1 = 0 on, the inner header is executed nine times."""
    code = load(build(UNKNOWN_AT_FIRST, language="asm"))
    found = together(code)
    assert found is not None
    covers(code, found, 0)


@pytest.mark.parametrize("level", ["-O0", "-O1", "-Os"])
def test_an_inner_loop_is_entered_in_each_iteration_around(level: str) -> None:
    code = load(build(DATA + ENTERED_OFTEN, *FLAGS, optimise=level))
    found = together(code)
    assert found is not None
    for content in range(5):
        covers(code, found, content)


def test_an_execution_that_begins_at_the_outer_header() -> None:
    """No edge enters the nest in which r1 moves."""
    code = load(build(BEGINNING, language="asm"))
    found = together(code)
    assert found is not None
    for content in range(5):
        covers(code, found, content)


def test_a_return_that_restores_the_compared_register() -> None:
    """Behind ``cmp r4, #5``, ``popeq {r4, pc}`` leaves the caller's r4, which is not 5."""
    code = load(build(RETURNING, language="asm"))
    found = together(code)
    assert found is not None
    nodes = code.graph.nodes
    returns = [
        most
        for edge, most in zip(code.graph.edges, found.edges, strict=True)
        if nodes[edge.src].block.last.conditional and edge.kind is EdgeKind.RETURN
    ]
    assert code.executed((5,))[code.entry + 20] == 3  # behind the call
    assert returns == [3]


def test_an_argument_leaves_a_loop_open() -> None:
    code = load(build(DATA + INPUT, *FLAGS, optimise="-O1"))
    [loop] = code.graph.loops
    assert unfinished(code).endless == {loop.index}
    found = together(code, {loop.index: 7})
    assert found is not None
    assert (list(found.most), list(found.open)) == ([7], [loop.index])


@pytest.mark.parametrize(
    "loop",
    [
        "for (unsigned x = *(volatile unsigned *)data; x; x &= x - 1) s++;",
        "while (data[s & 3]) s ^= 1;",
    ],
)
def test_a_loop_that_repeats_its_state_is_not_followed_on(loop: str) -> None:
    """The other loops are followed up to it."""
    source = f"int main(void) {{ int s = 0; for (int i = 0; i < 40; i++) s += data[i]; {loop} "
    code = load(build(f"{DATA}{source} return s; }}", *FLAGS, optimise="-O1"))
    found = unfinished(code)
    [endless] = found.endless
    assert sorted(found.most) in ([17, 40], [18, 40])
    assert found.may_end({endless: 33})
    assert not found.may_end({loop.index: 40 for loop in code.graph.loops if loop.index != endless})
    bounded = together(code, {endless: 33})
    assert bounded is not None
    assert sorted(bounded.most) == [33, 40]


@pytest.mark.parametrize("rest", ["", "if (data[i]) { data[1] = 7; break; }"])
def test_a_loop_that_is_left_early_is_not_always_executed_so_often(rest: str) -> None:
    loop = f"for (int i = 0; i < 40; i++) {{ s += data[i]; {rest} }}"
    code = load(build(f"{DATA}int main(void) {{ int s = 0; {loop} return s; }}", optimise="-O1"))
    found = together(code)
    assert found is not None
    assert (found.most, bool(found.always)) == ((40,), not rest)


@pytest.mark.parametrize(
    ("store", "most"), [("str r0, [r4]", 5), ("stm r4, {r0-r3}", None), ("str r0, [r4, #12]", None)]
)
def test_a_store_of_unknown_address_forgets_what_it_may_hit(store: str, most: int | None) -> None:
    """The word at r6 + 28 counts the loop; the store begins at r6 or at r6 + 16."""
    ram = MemoryRegion("ram", BASE, BASE + 0xFFF, RegionKind.CACHED, BASE, fixed=True)
    elf = build(STORING.replace("STORE", store), optimise="-O1")
    found = together(Program(elf, "main", memory=MemoryMap((ram,))))
    assert (found and found.most) == (most and (most,))


def test_the_sum_that_is_returned_decides_nothing() -> None:
    """Only the pointer, the end and the return address decide."""
    code = load(build(DATA + INPUT, *FLAGS, optimise="-O1"))
    [loop] = code.graph.loops
    found = deciding_registers(code.graph)[loop.header]
    assert LR in found
    assert len(found) == 3
