"""Relocations that only PT_DYNAMIC names: seen without section headers, and never a traceback."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from quoll.errors import ControlFlowError, InputError, WcetError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.quoll.building import build

# A word of read-only memory that a relocation changes, one that holds at the address of the link,
# and one that nothing changes.
PROGRAM = """
        .syntax unified
        .text
        .arm
        .global main
        .type main, %function
main:   ldr r3, word
1:      subs r3, r3, #1
        bne 1b
        bx lr
word:   .word 5
based:  .word 6
plain:  .word 7
tables:
rel:    .word word, 2, based, 23
rela:   .word word, 2, 9, based, 23, 9
relr:   .word based
        .section .dynamic, "a"
        .word {entries}
"""
SCRIPT = """
PHDRS { code PT_LOAD; dynamic PT_DYNAMIC; }
SECTIONS { . = 0x8000; .text : { *(.text) } :code .dynamic : { *(.dynamic) } :code :dynamic
  .data : { *(.data) } :code .bss : { *(.bss) } :code }
"""
REL = "17, rel, 18, 16, 19, 8, 0, 0"
RELA = "7, rela, 8, 24, 9, 12, 0, 0"
RELR = "36, relr, 35, 4, 37, 4, 0, 0"
CALLS_REL = "23, rel, 2, 16, 20, 17, 0, 0"
CALLS_RELA = "23, rela, 2, 24, 20, 7, 0, 0"
WORD = 0x8010


def linked(tmp_path: Path, entries: str) -> bytes:
    script = tmp_path / "own.ld"
    script.write_text(SCRIPT)
    source = PROGRAM.format(entries=entries)
    return build(source, f"-Wl,-T,{script}", language="asm", optimise="-O0").read_bytes()


def without_headers(data: bytes) -> bytes:
    """As ``strip --strip-section-headers`` leaves it."""
    changed = bytearray(data)
    struct.pack_into("<I", changed, 32, 0)
    struct.pack_into("<HHH", changed, 46, 0, 0, 0)
    return bytes(changed)


def constants(tmp_path: Path, data: bytes) -> list[int | None]:
    """The known values of a changed word, of a relocated one, and of another."""
    path = tmp_path / "kernel.elf"
    path.write_bytes(data)
    image = Image.load(path)
    return [image.constant(addr, 4) for addr in (WORD, WORD + 4, WORD + 8)]


@pytest.mark.parametrize("entries", [REL, CALLS_REL])
def test_words_of_relocations_are_unknown(tmp_path: Path, entries: str) -> None:
    data = linked(tmp_path, entries)
    assert constants(tmp_path, data) == [None, 6, 7]
    assert constants(tmp_path, without_headers(data)) == [None, 6, 7]


@pytest.mark.parametrize("entries", [RELA, CALLS_RELA])
def test_an_addend_of_its_own_replaces_what_is_stored(tmp_path: Path, entries: str) -> None:
    data = linked(tmp_path, entries)
    assert constants(tmp_path, data) == [None, None, 7]
    assert constants(tmp_path, without_headers(data)) == [None, None, 7]


def test_relative_words_hold_what_is_stored(tmp_path: Path) -> None:
    assert constants(tmp_path, without_headers(linked(tmp_path, RELR))) == [5, 6, 7]
    assert constants(tmp_path, without_headers(linked(tmp_path, "0, 0"))) == [5, 6, 7]


def test_both_kinds_at_once(tmp_path: Path) -> None:
    entries = f"{RELR.removesuffix(', 0, 0')}, 1, 1, 0x6ffffffb, 8, {REL}, 7, 0x1000"
    assert constants(tmp_path, without_headers(linked(tmp_path, entries))) == [None, 6, 7]


def test_code_that_a_loader_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.elf"
    entries = REL.replace("17, rel", "17, rel + 16")
    source = PROGRAM.replace("rela:", ".word main + 4, 1, plain, 2\nrela:")
    script = tmp_path / "own.ld"
    script.write_text(SCRIPT)
    text = source.format(entries=entries)
    elf = build(text, f"-Wl,-T,{script}", language="asm", optimise="-O0")
    for content in (elf.read_bytes(), without_headers(elf.read_bytes())):
        path.write_bytes(content)
        with pytest.raises(ControlFlowError, match="relocation changes subs r3, r3, #1") as refused:
            extract(Image.load(path), [0x8000])
        assert "0x00008004" in str(refused.value)


@pytest.mark.parametrize("flag", ["-shared", "-pie"])
def test_a_shared_object_of_the_linker(tmp_path: Path, flag: str) -> None:
    source = """
        .text
        .arm
        .global main
main:   ldr r3, lit
        bx lr
lit:    .word outside
        .weak outside
    """
    data = build(source, flag, "-fPIC", language="asm").read_bytes()
    path = tmp_path / "kernel.elf"
    for content in (data, without_headers(data)):
        path.write_bytes(content)
        assert Image.load(path).constant(0x8008, 4) is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("17, rel, 0, 0", "DT_REL without DT_RELSZ"),
        ("17, rel, 18, 16, 19, 12, 0, 0", "DT_RELENT is 12, not 8"),
        ("17, rel, 18, 15, 19, 8, 0, 0", "DT_RELSZ is 15, no multiple of 8"),
        ("17, rel, 18, 16, 17, rela, 0, 0", "DT_REL stands there twice"),
        ("17, 0x100000, 18, 16, 19, 8, 0, 0", "0x10 bytes of relocations at 0x00100000"),
        ("17, rel, 18, 0xfffffff8, 19, 8, 0, 0", "bytes of relocations at 0x0000801c"),
        ("7, rela, 8, 8, 9, 12, 0, 0", "DT_RELASZ is 8, no multiple of 12"),
        ("36, relr, 0, 0", "DT_RELR without DT_RELRSZ"),
        ("36, relr, 35, 3, 0, 0", "DT_RELRSZ is 3, no multiple of 4"),
        ("23, rel, 2, 16, 0, 0", "DT_JMPREL without a DT_PLTREL"),
        ("23, rel, 20, 17, 0, 0", "DT_JMPREL without DT_PLTRELSZ"),
        ("0x6000000f, rel, 0x60000010, 16, 0, 0", "DT_ANDROID_REL: packed"),
    ],
)
def test_malformed_tables_are_named(tmp_path: Path, entries: str, message: str) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(without_headers(linked(tmp_path, entries)))
    with pytest.raises(InputError, match=message) as refused:
        Image.load(path)
    assert "kernel.elf" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_segment_outside_of_the_file(tmp_path: Path) -> None:
    data = bytearray(linked(tmp_path, REL))
    (table,) = struct.unpack_from("<I", data, 28)
    struct.pack_into("<I", data, table + 32 + 16, 0x7FFFFFFF)  # p_filesz of the second
    (tmp_path / "kernel.elf").write_bytes(data)
    with pytest.raises(InputError, match="truncated inside its dynamic section"):
        Image.load(tmp_path / "kernel.elf")


@pytest.mark.slow("reads many damaged files")
def test_damaged_tables_give_errors_or_results(tmp_path: Path) -> None:
    rng = random.Random(46)
    originals = [without_headers(linked(tmp_path, e)) for e in (REL, RELA, RELR, CALLS_RELA)]
    outcomes = {"image": 0, "error": 0}
    for i in range(400):
        data = bytearray(originals[i % 4])
        (table,) = struct.unpack_from("<I", data, 28)
        offset, size = (struct.unpack_from("<I", data, table + 32 + at)[0] for at in (4, 16))
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.choice([table + 32 + rng.randrange(32), offset + rng.randrange(size)])
            data[at] ^= 1 << rng.randrange(8)
        (tmp_path / "damaged.elf").write_bytes(data)
        try:
            Image.load(tmp_path / "damaged.elf")
            outcomes["image"] += 1
        except WcetError:
            outcomes["error"] += 1
    assert min(outcomes.values()) > 40
