"""Discarded functions hide no source line: each program is linked at 0 and elsewhere, and compared.

Elsewhere there is no code at the address that linkers leave in the line table for discarded
functions, so that every line there is right.
"""

from __future__ import annotations

import random
import subprocess
from itertools import product
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from quoll.image.image import Image
from tests.testing.programs import needs

VECTORS = """
        .syntax unified
        .section .first, "ax", %progbits
        .global start
        .type start, %function
start:  ldr pc, [pc, #-4]
        .word main
        nop
        bx lr
        .size start, . - start
        .text
        .global after
        .type after, %function
after:  bx lr
        .size after, . - after
"""
PLAIN = VECTORS.replace(".type start, %function", "").replace(".size start, . - start", "")
TABLE = """
        .section .first, "a", %progbits
        .global start
        .type start, %object
start:  .word 0x20000000, main, main, main
        .size start, . - start
"""
C_FIRST = """
int main(int);
__attribute__((section(".first"))) int start(int x)
{
    x = x * 3 + 1;
    return main(x ^ 5);
}
"""
MAIN = """
int removed_long(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x; return s; }
int removed(int x) { return x + 1; }
int removed_alike(int x)
{
    x = x * 5 + 1;
    return x ^ 9;
}
int removed_4(int x) { x = x * 3 + 1; x ^= 5; return x; }
static int __attribute__((noinline)) kept(int x)
{
    int s = 0;
    for (int i = 0; i < 10; i++)
        s += *(volatile int *)(0x9000 + i);
    return s + x;
}
int main(int x)
{
    return kept(x) + 1;
}
"""
SCRIPT = """
SECTIONS {{ . = {base}; .text : {{ KEEP(*(.first)) *(.text .text.*) }}
  . = {base} + 0x9000; .data : {{ *(.data*) *(.bss*) }} /DISCARD/ : {{ *(.ARM.ex*) }} }}
"""
FIRST = {"vectors": VECTORS, "plain": PLAIN, "table": TABLE, "function": C_FIRST}
LINKERS = {
    "bfd": ["arm-none-eabi-ld"],
    "lld": ["ld.lld"],
    "lld, -1": ["ld.lld", "-z", "dead-reloc-in-nonalloc=.debug_*=0xffffffff"],
    "lld, -2": ["ld.lld", "-z", "dead-reloc-in-nonalloc=.debug_*=0xfffffffe"],
}


def run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def linked(folder: Path, compiler: str, flags: list[str], linker: str, base: int) -> Image:
    (folder / "own.ld").write_text(SCRIPT.format(base=base))
    names = sorted(p.name for p in folder.iterdir() if p.suffix in (".c", ".S", ".cc"))
    build = {"gcc": ["arm-none-eabi-gcc"], "clang": ["clang", "--target=arm-none-eabi"],
             "g++": ["arm-none-eabi-g++"]}[compiler]  # fmt: skip
    common = ["-mcpu=cortex-a8", "-ffunction-sections", "-ffreestanding", "-fno-exceptions"]
    run(*build, *common, *flags, "-c", *names, cwd=folder)
    objects = [f"{name.rsplit('.', 1)[0]}.o" for name in names]
    options = ["--gc-sections", "-T", "own.ld", "-e", "start", "-o", f"at_{base:x}.elf"]
    run(*LINKERS[linker], *options, *objects, cwd=folder)
    return Image.load(folder / f"at_{base:x}.elf")


def source_lines(image: Image, base: int) -> list[str]:
    return [str(image.line(base + addr)) for addr in range(0, 0x200, 2)]


def compared(folder: Path, compiler: str, flags: list[str], linker: str) -> list[str]:
    here, there = (linked(folder, compiler, flags, linker, base) for base in (0, 0x100000))
    assert here.lines.problem == there.lines.problem == ""
    found = source_lines(here, 0)
    assert found == source_lines(there, 0x100000)
    return found


@needs("clang", "ld.lld")
@pytest.mark.slow("compiles many programs")
@pytest.mark.parametrize(
    ("compiler", "linker", "first", "flags"),
    [
        *product(["gcc", "clang"], ["bfd", "lld"], ["vectors", "table", "function"],
                 [("-gdwarf-5", "-O1", "-marm")]),
        # Clang says of an assembler file neither sizes nor which labels are functions.
        *product(["gcc"], ["bfd", "lld"], ["plain"], [("-gdwarf-5", "-O1", "-marm")]),
        *product(["gcc", "clang"], ["lld, -1", "lld, -2"], ["vectors"], [("-gdwarf-5", "-O1")]),
        *product(["gcc", "clang"], ["bfd"], ["vectors", "function"],
                 [("-gdwarf-4", "-O2", "-mthumb"), ("-gdwarf-2", "-O0", "-marm"),
                  ("-gdwarf-3", "-O1", "-marm")]),
        ("gcc", "bfd", "vectors", ("-gdwarf-5", "-gdwarf64", "-O1", "-marm")),
    ],
)  # fmt: skip
def test_lines_at_0(
    tmp_path: Path, compiler: str, linker: str, first: str, flags: tuple[str, ...]
) -> None:
    (tmp_path / f"first{'.c' if first == 'function' else '.S'}").write_text(FIRST[first])
    (tmp_path / "main.c").write_text(MAIN)
    found = compared(tmp_path, compiler, list(flags), linker)
    assert {"main.c:14", "main.c:19"} <= {*found}
    assert not {f"main.c:{line}" for line in range(1, 10)} & {*found}
    if first == "function":
        assert found[0].startswith("first.c:")
    elif first != "table":
        assert found[0].startswith("first.S:")


def test_a_discarded_function_of_one_size_with_code_without_lines(tmp_path: Path) -> None:
    """The name of the function shows that the lines do not belong to the code there."""
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "first.S").write_text(VECTORS)
    image = linked(tmp_path, "gcc", ["-gdwarf-5", "-O1", "-marm"], "bfd", 0)
    assert image.line(0) is not None
    run("arm-none-eabi-objcopy", "-g", "first.o", cwd=tmp_path)
    options = ["--gc-sections", "-T", "own.ld", "-e", "start", "-o", "mixed.elf"]
    run("arm-none-eabi-ld", *options, "first.o", "main.o", cwd=tmp_path)
    image = Image.load(tmp_path / "mixed.elf")
    assert image.line(0) is None
    assert "main.c:14" in source_lines(image, 0)


def test_a_function_of_a_header_has_its_lines(tmp_path: Path) -> None:
    """GNU ld points the lines of every copy at the one that it keeps."""
    shared = "template <class T> __attribute__((noinline)) T twice(T x)\n{\n  return x + x;\n}\n"
    (tmp_path / "own.h").write_text(shared)
    (tmp_path / "a.cc").write_text('#include "own.h"\nint other(int x) { return twice(x); }\n')
    text = '#include "own.h"\nint other(int);\nextern "C" int start(int x) { return twice(x)'
    (tmp_path / "b.cc").write_text(f"{text} + other(x); }}\n")
    image = linked(tmp_path, "g++", ["-gdwarf-5", "-O1", "-marm"], "bfd", 0x8000)
    symbol = image.symbol("_Z5twiceIiET_S0_")
    assert symbol is not None
    assert str(image.line(symbol.addr)).startswith("own.h:")


@pytest.mark.slow("many random inputs")
def test_damaged_entries_give_lines_or_none(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "first.S").write_text(VECTORS)
    whole = linked(tmp_path, "gcc", ["-gdwarf-5", "-O1", "-marm"], "bfd", 0)
    data = (tmp_path / "at_0.elf").read_bytes()
    with (tmp_path / "at_0.elf").open("rb") as file:
        sections = [ELFFile(file).get_section_by_name(f".debug_{n}") for n in ("info", "abbrev")]
        spans = [(s["sh_offset"], s["sh_size"]) for s in sections if s is not None]
    rng, known = random.Random(46), source_lines(whole, 0)
    kept = 0
    for i in range(400):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            start, size = spans[i % 2]
            changed[start + rng.randrange(size)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        (tmp_path / "damaged.elf").write_bytes(changed)
        found = source_lines(Image.load(tmp_path / "damaged.elf"), 0)
        kept += found == known
        assert found[10:] == known[10:]
    assert kept > 40
