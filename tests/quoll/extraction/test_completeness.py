"""Completeness: the extracted graphs contain all instructions and edges that QEMU executes.

Each program runs in ``qemu-arm``, one instruction at a time, and its sequence of addresses is
followed through the functions' graphs with a stack of calls, as a processor would go.
"""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block, Cfg, EdgeKind, Program
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.harness.cases import in_turn
from tests.testing.quoll.building import build
from tests.testing.quoll.invariants import verify_program

STARTS = {
    False: '__asm__(".text\\n.arm\\n.balign 4\\n.global _start\\n.type _start, %function\\n'
    '_start: mov r0, #5\\n bl main\\n mov r7, #1\\nstop: svc #0\\n");\n',
    True: '__asm__(".text\\n.syntax unified\\n.thumb\\n.balign 4\\n.global _start\\n.thumb_func\\n'
    '_start: movs r0, #5\\n bl main\\n movs r7, #1\\nstop: svc #0\\n");\n',
}

PROGRAMS = {
    "loops": """
int data[20];
int main(int n)
{
    int sum = 0;
    for (int i = 0; i < 20; i++)
        data[i] = i * n;
    for (int i = 0; i < 20; i += 3)
        for (int j = 19; j > i; j--) {
            if (data[j] % 7 == 3)
                continue;
            if (data[j] > 90)
                break;
            sum += data[j] ^ data[i];
        }
    do { sum >>= 1; } while (sum > 50);
    return sum;
}
unsigned __aeabi_uidivmod(unsigned a, unsigned b) { return a - b; }
int __aeabi_idivmod(int a, int b) { while (a >= b) a -= b; return a; }
""",
    "calls": """
#define N __attribute__((noinline))
N int leaf(int x) { return x * 3 + 1; }
N int tail(int x) { return leaf(x + 1); }
N int chain(int x) { if (x & 1) return tail(x); return leaf(x) + leaf(x + 2); }
N int many(int a, int b, int c, int d, int e, int f) { return a + b * c - d + e * f + chain(a); }
N int deep(int n) { return n ? deep(n - 1) + chain(n) : 0; }
N void swap(int *a, int *b) { int t = *a; *a = *b; *b = t; }
int main(int n)
{
    int a[4] = {n, n + 1, n + 2, n + 3};
    swap(&a[0], &a[3]);
    int sum = many(a[0], a[1], a[2], a[3], n, n);
    for (int i = 0; i < n; i++)
        sum += i % 2 ? tail(i) : chain(sum);
    return sum + deep(6);
}
""",
    "switches": """
#define N __attribute__((noinline))
N int dense(int x)
{
    switch (x) {
    case 0: return 7; case 1: return x * 3; case 2: return x << 4; case 3: return ~x;
    case 4: return 90; case 5: return x ^ 21; case 6: return x - 60; case 7: return 2;
    default: return -1;
    }
}
N int sparse(int x)
{
    switch (x) {
    case -5: return 1; case 3: return 2; case 40: return 3; case 41: return 4;
    case 42: return 5; case 43: return 6; case 44: return 8; case 1000: return 7;
    case 70000: return 9;
    }
    return 0;
}
N int machine(const char *s)
{
    int state = 0, count = 0;
    for (; *s; s++)
        switch (state) {
        case 0: state = *s == 'a' ? 1 : 5; break;
        case 1: count++; state = 2; break;
        case 2: if (*s == 'b') { count += 10; continue; } state = 3; break;
        case 3: state = 4; break;
        case 4: state = 0; count += 100; break;
        case 5: state = *s & 3; break;
        default: return -1;
        }
    return count * 8 + state;
}
N static int inc(int x) { return x + 1; }
N static int dbl(int x) { return x * 2; }
N static int neg(int x) { return -x; }
static int (*const ops[4])(int) = {inc, dbl, neg, inc};
N int apply(int x) { return ops[x & 3](x) + 1; }
int main(int n)
{
    int sum = 0;
    for (int i = -1; i < 10; i++)
        sum += dense(i) + sparse(i + 38) + apply(i);
    return sum + machine("abbcaazzyabcabdab") + sparse(70000) + sparse(-n);
}
""",
    "division": """
#define N __attribute__((noinline))
N unsigned gcd(unsigned a, unsigned b) { while (b) { unsigned t = a % b; a = b; b = t; } return a; }
N int digits(int x, int base) { int n = 1; while (x /= base) n++; return n; }
int main(int n)
{
    int sum = gcd(1u << 31, 3 << 20) + gcd(123456789, 987654321) + gcd(0xFFFFFFFF, n);
    for (int i = -9; i < 10; i += 2)
        sum += 100000 / i + 77 % i + digits(sum ^ i, n);
    return sum;
}
""",
    "long": """
#define N __attribute__((noinline))
typedef unsigned long long u64;
N u64 mix(u64 a, u64 b) { return (a << 7 | a >> 57) + b * 0x9E3779B97F4A7C15ull; }
N int bits(u64 x) { int n = 0; while (x) { x &= x - 1; n++; } return n; }
N int parse(const char *s)
{
    int value = 0, sign = 1;
    while (*s == ' ' || *s == '\\t') s++;
    if (*s == '-') { sign = -1; s++; } else if (*s == '+') s++;
    for (; *s >= '0' && *s <= '9'; s++) value = value * 10 + (*s - '0');
    return sign * value;
}
int main(int n)
{
    u64 h = n;
    for (int i = 0; i < 9; i++) h = mix(h, i);
    return bits(h) + parse("  -123x") + parse("+77");
}
""",
}


def executed(path: Path) -> list[int]:
    """The addresses of all instructions that the program executes, in order."""
    log = path.with_suffix(".log")
    subprocess.run(
        ["qemu-arm", "-singlestep", "-d", "exec,nochain", "-D", str(log), str(path)],
        timeout=60,
        check=False,
        capture_output=True,
    )
    return [
        int(match[1], 16)
        for match in re.finditer(r"^Trace.*\[\w+/(\w+)/", log.read_text(), re.MULTILINE)
    ]


class Walk:
    """A position in the graphs of a program: the call stack and the next instruction."""

    def __init__(self, program: Program, start: int) -> None:
        self.program = program
        self.stack: list[tuple[Cfg, tuple[int, ...]]] = []  # caller and where it goes on
        self.cfg = program.functions[start]
        self.block: Block = self.cfg.blocks[0]
        self.at = 0

    def go(self, addr: int) -> None:
        """Execute the current instruction; the one at ``addr`` follows."""
        insn = self.block.insns[self.at]
        if self.at + 1 < len(self.block.insns):
            self.at += 1
            assert self.block.insns[self.at].addr == addr, (
                f"{insn.addr:#x} is followed by {addr:#x}"
            )
            return
        assert self._inside(addr) or self._call(addr) or self._return(addr), (
            f"{insn.addr:#x} {insn.text} is followed by {addr:#x}"
        )
        self.at = 0

    def _inside(self, addr: int) -> bool:
        for edge in self.cfg.successors(self.block.index):
            target = self.cfg.blocks[edge.dst]
            if edge.kind is not EdgeKind.ACROSS and target.addr == addr:
                self.block = target
                return True
        return False

    def _call(self, addr: int) -> bool:
        if addr not in self.block.calls:
            return False
        if not self.block.tail:
            self.stack.append((self.cfg, self.block.returned_to))
        self.cfg = self.program.functions[addr]
        self.block = self.cfg.blocks[0]
        return True

    def _return(self, addr: int) -> bool:
        if not self.block.returns or not self.stack:
            return False
        self.cfg, after = self.stack.pop()
        across = {e.dst for e in self.cfg.edges if e.kind is EdgeKind.ACROSS}
        self.block = next(b for b in self.cfg.blocks if b.addr == addr)
        return addr in after and self.block.index in across


@pytest.mark.slow("compiles and extracts many programs")
@pytest.mark.parametrize(
    ("source", "optimise"),
    in_turn(
        product(PROGRAMS, ["arm1136jf-s", "cortex-a8", "arm7tdmi"]),
        ["-O0", "-O1", "-O2", "-O3", "-Os", "-O2", "-O1"],
    ),
)
def test_what_runs_is_in_the_graph(source: tuple[str, str], optimise: str) -> None:
    """ARM, Thumb-2 and Thumb code."""
    name, cpu = source
    thumb = cpu != "arm1136jf-s"
    path = build(
        PROGRAMS[name] + STARTS[thumb],
        "-Wl,-e,_start",
        optimise=optimise,
        thumb=thumb,
        cpu=cpu,
        link=("-lgcc",),
    )
    image = Image.load(path)
    start, stop = image.symbol("_start"), image.symbol("stop")
    assert start
    assert stop
    program = extract(image, [start.addr | thumb], exits=frozenset({stop.addr}))
    verify_program(program)
    assert program.unresolved == ()
    trace = executed(path)
    assert len(trace) > 100
    assert trace[0] == start.addr
    walk = Walk(program, start.addr)
    for addr in trace[1:]:
        walk.go(addr)
    assert walk.block.exits
    assert walk.block.last.flow is ControlFlow.TRAP
