"""Words whose addresses no code uses as numbers (assumption S8), in compiled code and assembly."""

from __future__ import annotations

import pytest

from quoll.image.image import Image
from quoll.own_objects.own_objects import own_objects
from tests.testing.quoll.building import address, build

LEVELS = ("-O0", "-O1", "-O2", "-Os", "-O3")
HEAD = """
int own, other, x, array[8], *where, after;
struct node { int a, b, c; struct node *next; } node;
__attribute__((noipa)) void call(void *p) { where = p; }
__attribute__((noipa)) void five(int a, int b, int c, int d, int *p) { *p = a + b + c + d; }
__attribute__((noipa)) int give(int a) { return a + own; }
"""


def own(
    source: str, optimise: str = "-O2", language: str = "c", *, thumb: bool = False
) -> set[str]:
    image = Image.load(build(source, optimise=optimise, language=language, thumb=thumb))
    return set(own_objects(image).names.values())


@pytest.mark.parametrize("thumb", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_words_that_code_only_loads_and_stores(level: str, thumb: bool) -> None:
    """Neighbours have one anchor; arrays, and words that pointers may be, are no such objects.

    Nor is the word that ends where an array begins: its index may be negative.
    """
    source = (
        HEAD
        + """
    int main(int *p, int i) {
        own = i; *p = own; x = give(i); other += x; array[i] = after; node.b = own;
        for (int k = 0; k < i; k++) { other += array[k]; after = p[k]; p[k] = x; }
        return own + other;
    }"""
    )
    image = Image.load(build(source, optimise=level, thumb=thumb))
    words = {"own", "other", "x", "after", "where"}
    before = {name for name in words if address(image, name) + 4 == address(image, "array")}
    assert set(own_objects(image).names.values()) == words - before


TAKEN = {
    "fifth argument": "for (int k = 0; k < i; k++) five(k, 2, 3, 4, &x);",
    "stored": "where = &x;",
    "handed": "call(&x);",
    "compared": "if (p == &x) own = 1;",
    "returned": "return (int)&x;",
    "changed": "where = (int *)((unsigned)&x ^ i);",
    "halved": "own = (unsigned)&x >> 16; other = (unsigned short)(unsigned)&x;",
    "indexed": "(&x)[i] = 1;",
    "one of two": "*(i ? &x : p) = own;",
    "behind": "where = &x + 1;",
    "led back": "*p = (&x + 1)[-i];",
    "led back later": "call(&x + 1); where[-1] = 1;",
    "neighbour": "*(int *)((char *)&x + (i & 4)) = 1;",
    "in a table": "static int *const table[] = {&own, &x, &own}; where = table[i & 1];",
    "in data": "static int *one = &x; p = one; one = p + 1; *p = 2;",
    "on the stack": "int *volatile q = &x; *q = 1;",
    "in a structure": "struct { int *q; } volatile s = {&x}; where = s.q;",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("use", TAKEN.values(), ids=TAKEN)
def test_an_address_that_is_used_as_a_number(use: str, level: str) -> None:
    source = HEAD + f"int main(int *p, int i) {{ x = i; {use} return 0; }}"
    assert "x" not in own(source, optimise=level)


ASSEMBLY = """
    .syntax unified
    .text
    .global main
    .type main, %function
main:
    {code}
    .ltorg
    .bss
    .balign 4
    .type x, %object
    .size x, 4
x:  .space 4
    .type y, %object
    .size y, 4
y:  .space 4
"""


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("ldr r3, =x; str r0, [r3]; str r0, [r3, #4]; bx lr", {"x", "y"}),
        ("ldr r3, =y; str r0, [r3, #-4]; bx lr", {"x", "y"}),
        ("ldr r3, =x; strd r0, r1, [r3]; bx lr", set()),  # both, at once
        ("ldr r3, =x+2; str r0, [r3]; bx lr", set()),
        ("ldr r3, =x; push {r3}; pop {r2}; str r0, [r2, #4]; bx lr", set()),
        ("ldr r3, =x; str r3, [r0]; str r1, [r3, #4]; bx lr", {"y"}),
        ("ldr r3, =x; add r3, r3, r0; str r1, [r3, #4]; bx lr", set()),
        ("ldr r3, =x-64; add r3, r3, r0; str r3, [r1]; bx lr", {"x", "y"}),
        ("ldr r0, =x; bx lr", {"y"}),
        ("ldr r0, =x+4; bx lr", set()),
        ("ldr r0, =x+5; bx lr", {"x"}),
        ("ldr r0, =y+4; bx lr", {"x"}),
        ("ldr r0, =y+5; bx lr", {"x", "y"}),
        ("ldr r3, =x+4; ldr r2, [r3, #-4]; bx lr", {"x", "y"}),
        ("ldr r3, =x; str r0, [r3]; bx lr", {"x", "y"}),
        ("mov r3, r1; cmp r0, #0; ldrne r3, =x; str r0, [r3]; bx lr", {"y"}),
        ("cmp r0, #0; ldrne r3, =x; strne r0, [r3]; bx lr", {"x", "y"}),
        ("ldr r4, =x; bl helper; bx lr; helper: str r0, [r4]; bx lr", {"y"}),
        ("ldr r2, =x; eor r2, r2, #1; eor r2, r2, #1; str r0, [r2]; bx lr", {"y"}),
        ("movs r2, #4; ldr r3, =x; ldr r2, [r3, r2]; bx lr", {"x", "y"}),
        ("ldr r3, =x; b 2f; 1: str r0, [r3], #4; 2: subs r1, #1; bne 1b; bx lr", set()),
        ("adr r3, 1f; ldr r2, [r3, r0]; str r0, [r2]; bx lr; 1: .word 1, x", {"y"}),
        ("ldr pc, [pc, r0, lsl #2]; nop; .word 1f, 1f; 1: ldr r3, =x; str r3, [r1]; bx lr", {"y"}),
    ],
)
def test_uses_in_assembly(code: str, found: set[str]) -> None:
    assert own(ASSEMBLY.format(code=code), language="asm") == found


def test_code_that_is_not_told_from_data_has_no_such_objects() -> None:
    elf = build(ASSEMBLY.format(code="ldr r3, =x; str r0, [r3]; bx lr"), language="asm")
    image = Image.load(elf)
    assert own_objects(image).names
    bare = elf.with_name("bare.elf")
    bare.write_bytes(elf.read_bytes().replace(b"\0$a\0", b"\0qa\0").replace(b"\0$d\0", b"\0qd\0"))
    assert not own_objects(Image.load(bare)).names
