"""The table of a switch without a range check is offered, and names every case."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.programs import needs
from tests.testing.quoll.building import build

CASES = 6
SOURCE = """
volatile int out; struct { volatile unsigned short at; } state;
#define N __attribute__((noinline))
%s
int main(void) {
    switch (state.at) {
    %s
    default: __builtin_unreachable();
    }
    return out += 5;
}
"""
FUNCTIONS = "\n".join(f"N void h{n}(void) {{ out += {n * n + 1}; }}" for n in range(CASES))
BODIES = [f"case {n}: h{n}(); {'out = 4;' if n % 2 else ''} break;" for n in range(CASES)]


def compiled(folder: Path, *flags: str) -> Image:
    """The program as Clang compiles it; GCC's tables are resolved without help."""
    (folder / "main.c").write_text(SOURCE % (FUNCTIONS, "\n    ".join(BODIES)))
    return linked(folder, *flags)


def linked(folder: Path, *flags: str) -> Image:
    """The image of ``main.c``."""
    command = ["clang", "--target=arm-none-eabi", *flags, "-O2", "-ffreestanding", "-c", "main.c"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    link = ["arm-none-eabi-ld", "-Ttext=0x8000", "-e", "main", "main.o", "-o", "main.elf"]
    subprocess.run(link, cwd=folder, check=True, capture_output=True)
    return Image.load(folder / "main.elf")


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize(
    "flags", [("-mcpu=arm1136jf-s",), ("-mcpu=cortex-a8",), ("-mcpu=cortex-a8", "-mthumb")]
)
def test_every_case_is_among_the_targets(flags: tuple[str, ...], tmp_path: Path) -> None:
    image = compiled(tmp_path, *flags)
    main = image.symbol("main")
    assert main is not None
    (jump,) = extract(image, [main.addr | main.thumb]).unresolved
    assert jump.proposal is not None
    assert jump.proposal.candidates == CASES
    assert f"has {CASES} entries" in jump.proposal.note
    fact = jump.missing.fact.replace("PLACE", f"{jump.addr:#x}", 1)
    facts = locate(parse(f"{fact}\n", "k.facts"), image)
    program = extract(image, [main.addr | main.thumb], facts)
    assert not program.unresolved
    names = {cfg.name for cfg in program.functions.values()}
    assert names == {"main", *(f"h{n}" for n in range(CASES))}


NARROW = """
volatile int out; volatile unsigned char at;
struct { volatile int words[8]; } many;
int main(void) {
    switch (at) {
    %s
    default: __builtin_unreachable();
    }
    return out += 5;
}
void behind(void) {
    %s
}
"""


@pytest.mark.slow("compiles and extracts programs")
@needs("clang")
@pytest.mark.parametrize("flags", [("-mcpu=arm1136jf-s",), ("-mcpu=cortex-a8", "-mthumb")])
def test_code_behind_a_table_is_not_read_as_entries(flags: tuple[str, ...], tmp_path: Path) -> None:
    """A byte as index reaches past the table: extraction reads no code as entries of the table."""
    cases = (f"case {n}: out {'+-^'[n % 3]}= {n * n + 1}; break;" for n in range(CASES))
    more = (f"many.words[{n % 8}] += out * {n * 77 + 1};" for n in range(120))
    source = NARROW % ("\n    ".join(cases), "\n    ".join(more))
    (tmp_path / "main.c").write_text(source)
    image = linked(tmp_path, *flags)
    main = image.symbol("main")
    assert main is not None
    unresolved = extract(image, [main.addr | main.thumb]).unresolved
    proposals = [one.proposal for one in unresolved if one.proposal is not None]
    assert [p.candidates for p in proposals if f"has {CASES} entries" in p.note] == [CASES]
    assert len(unresolved) == 1, [str(one) for one in unresolved]


SPILLED = """
.syntax unified
.text
.global main, state
.type main, %function
main: ldr r0, =state
ldrb r0, [r0]
push {r0}
ldr r1, [sp]
add r0, pc, #4
ldr r0, [r0, r1, lsl #2]
mov pc, r0
.word first, second, third
first: mov r0, #1
b end
second: mov r0, #2
b end
third: mov r0, #3
end: add sp, sp, #4
bx lr
.size main, .-main
.ltorg
.data
state: .word 0
"""


def test_the_jump_may_follow_the_load() -> None:
    """As rustc without optimisation compiles a match over all values of a type."""
    image = Image.load(build(SPILLED, language="S"))
    main = image.symbol("main")
    assert main is not None
    (jump,) = extract(image, [main.addr]).unresolved
    assert jump.proposal is not None
    assert jump.proposal.fact == "targets of PLACE are first, second, third"


def test_other_loads_of_the_pc_have_no_table() -> None:
    text = "void (*const *table)(void); int main(int n) { table[n](); return 0; }"
    image = Image.load(build(text, "-fno-optimize-sibling-calls"))
    main = image.symbol("main")
    assert main is not None
    (call,) = extract(image, [main.addr]).unresolved
    assert call.proposal is None
