"""Images against readelf-like oracles, hand-made faults, and hundreds of damaged files."""

from __future__ import annotations

import random
import re
import resource
import struct
import subprocess
import time
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from quoll.errors import InputError, UsageError, WcetError
from quoll.extraction.extract import extract
from quoll.image.image import Image, RawMemory
from tests.testing.quoll.building import build
from tests.testing.quoll.overlays import overlaid

PROGRAM = """
const int table[4] = {11, 22, 33, 44};
int counter = 5;
static int local(int x) { return x * 3; }
int helper(int x);
int main(int x) {
    counter += local(x);
    return table[x & 3] + helper(x);
}
int helper(int x)
{
    if (x > 3)
        return 7;
    return counter;
}
"""
ASSEMBLY = """
        .syntax unified
        .text
        .arm
        .global main
        .type main, %function
main:   ldr r0, =0x12345678
        bx lr
        .ltorg
        .global alias
alias:
nosize: bx lr
        .thumb
        .thumb_func
        .global small
        .type small, %function
small:  bx lr
        .size small, . - small
        .section .rodata
        .global odd
odd:    .byte 1, 2, 3, 4
        .bss
hole:   .space 16
"""


def objdump_lines(path: Path) -> dict[int, tuple[str, int]]:
    """Address -> (file, line) by the other implementation of the line table."""
    with path.open("rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info()
        found: dict[int, tuple[str, int]] = {}
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            assert program is not None
            version = program["version"]
            previous = None
            for entry in program.get_entries():
                state = entry.state
                if state is None:
                    continue
                if previous is not None:
                    files = program["file_entry"]
                    name = files[previous.file - (0 if version >= 5 else 1)].name.decode()
                    for addr in range(previous.address, state.address):
                        found[addr] = (name, previous.line)
                previous = None if state.end_sequence else state
        return found


@pytest.mark.parametrize("version", ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_lines_agree_with_pyelftools(version: str, optimise: str) -> None:
    path = build(PROGRAM, version, optimise=optimise)
    image = Image.load(path)
    oracle = objdump_lines(path)
    assert len(oracle) > 40
    for addr, (file, number) in oracle.items():
        line = image.line(addr)
        assert line is not None
        assert (line.file, line.line) == (file, number)
    assert image.line(max(oracle) + 1) is None
    assert image.line(min(oracle) - 1) is None
    assert image.lines.problem == ""


def test_addresses_of_a_line_are_where_it_starts() -> None:
    image = Image.load(build(PROGRAM, optimise="-O0"))
    starts = image.addresses_of_line("prog.c", 13)
    assert starts
    for addr in starts:
        assert str(image.line(addr)) == "prog.c:13"
        assert str(image.line(addr - 1)) != "prog.c:13"
    assert image.addresses_of_line("prog.c", 9999) == ()
    assert image.addresses_of_line("rog.c", 13) == ()


def test_bytes_constants_and_rights() -> None:
    image = Image.load(build(PROGRAM))
    table, counter, main = image.symbol("table"), image.symbol("counter"), image.symbol("main")
    assert table
    assert counter
    assert main
    assert [image.constant(table.addr + 4 * i, 4) for i in range(4)] == [11, 22, 33, 44]
    assert image.constant(table.addr + 4, 1) == 22
    assert image.constant(counter.addr, 4) is None
    assert image.read(counter.addr, 4) == b"\5\0\0\0"
    assert image.is_executable(main.addr)
    assert not image.is_executable(counter.addr)
    assert image.read(0xFFFF0000, 1) is None
    assert image.constant(0xFFFF0000, 4) is None
    assert image.cpu == "6J"
    assert image.attributes.arch == "v6"
    assert re.fullmatch("[0-9a-f]{64}", image.sha256)


def test_words_that_the_loader_changes_are_no_constants() -> None:
    source = """
        .global main, other
        .type main, %function
        main:   ldr r0, 1f
                ldr r0, 2f
                bx lr
        1:      .word 0x12345678
        2:      .word other
        3:      .word 0x87654321
        """
    elf = build(source, "-shared", "-Wl,-z,notext", language="S")
    image = Image.load(elf)
    main = image.symbol("main")
    assert main is not None
    words = [image.constant(main.addr + 12 + 4 * i, 4) for i in range(3)]
    assert words == [0x12345678, None, 0x87654321]
    tables = [s for s in image.sections if s.name in (".dynsym", ".rel.dyn", ".dynstr")]
    assert len(tables) == 3
    assert [image.constant(s.addr, 1) for s in tables] == [None] * 3


def test_zero_initialised_memory_is_readable_and_no_constant() -> None:
    image = Image.load(build(ASSEMBLY, language="S"))
    hole = image.symbol("hole")
    assert hole
    assert image.read(hole.addr, 16) == bytes(16)
    assert image.constant(hole.addr, 4) is None


def test_symbols_mapping_and_places() -> None:
    image = Image.load(build(ASSEMBLY, language="S"))
    main, alias, small = image.symbol("main"), image.symbol("alias"), image.symbol("small")
    assert main
    assert alias
    assert small
    assert (main.addr, main.thumb, main.kind) == (0x8000, False, "func")
    assert (small.thumb, small.size, small.addr % 2) == (True, 2, 0)
    assert {s.name for s in image.symbols.at(alias.addr)} == {"alias", "nosize"}
    assert image.thumb_at(main.addr) is False
    assert image.thumb_at(small.addr) is True
    assert image.is_marked_data(0x8008)
    assert not image.is_marked_data(0x8004)
    assert image.place(0x8004).startswith("0x00008004 <main+0x4> prog.S:8")
    assert image.place(small.addr).startswith(f"0x{small.addr:08x} <small> prog.S:")
    assert image.place(0x4) == "0x00000004"
    assert image.symbol("absent") is None


def test_readelf_finds_the_same_symbols() -> None:
    path = build(PROGRAM, optimise="-O0")
    image = Image.load(path)
    text = subprocess.run(
        ["arm-none-eabi-readelf", "-sW", path], capture_output=True, text=True, check=True
    ).stdout
    wanted = {
        (parts[7], int(parts[1], 16), int(parts[2]))
        for parts in map(str.split, text.splitlines())
        if len(parts) == 8 and parts[3] in ("FUNC", "OBJECT") and parts[6] != "ABS"
    }
    assert len(wanted) >= 4
    found = {(s.name, s.addr, s.size) for s in image.symbols.symbols if s.kind != "notype"}
    assert found == wanted


def test_ambiguous_local_names_are_refused(tmp_path: Path) -> None:
    """Renames a local symbol so that two share a name: as static functions of two files do."""
    path = tmp_path / "twins.elf"
    original = build(".global main\nmain: bx lr\ntwina: bx lr\ntwinb: bx lr\n", language="S")
    data = original.read_bytes()
    path.write_bytes(data.replace(b"\0twinb\0", b"\0twina\0"))
    image = Image.load(path)
    assert len(image.symbols.named("twina")) == 2
    with pytest.raises(InputError, match="several symbols are named twina"):
        image.symbol("twina")


def test_raw_memory_replaces_what_the_elf_has(tmp_path: Path) -> None:
    path = build(PROGRAM)
    main = Image.load(path).symbol("main")
    assert main
    dump = tmp_path / "dump.bin"
    dump.write_bytes(b"\xaa\xbb\xcc\xdd")
    raw = RawMemory(main.addr + 4, str(dump), writable=False)
    image = Image.load(path, (raw, RawMemory(0x9000_0000, str(dump))))
    plain = Image.load(path)
    before = plain.read(main.addr, 12)
    assert before
    assert image.read(main.addr, 12) == before[:4] + b"\xaa\xbb\xcc\xdd" + before[8:]
    assert image.constant(main.addr + 4, 4) == 0xDDCCBBAA
    assert image.constant(0x9000_0000, 4) is None
    assert image.is_executable(0x9000_0000)
    assert image.sha256 != plain.sha256
    with pytest.raises(InputError, match="do not fit"):
        Image.load(path, (RawMemory(0xFFFF_FFFE, str(dump)),))


def patched(data: bytes, offset: int, layout: str, *values: int) -> bytes:
    """``data`` with fields overwritten."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, offset, *values)
    return bytes(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: b"#!/bin/sh\n", "is not an ELF"),
        (lambda d: b"", "is not an ELF"),
        (lambda d: d[:40], "truncated"),
        (lambda d: patched(d, 4, "B", 2), "32-bit"),
        (lambda d: patched(d, 5, "B", 2), "big-endian"),
        (lambda d: patched(d, 18, "<H", 62), "machine X86_64"),
        (lambda d: patched(d, 16, "<H", 1), "relocatable"),
        (lambda d: patched(d, 16, "<H", 4), "neither"),
        (lambda d: patched(d, 44, "<H", 0), "no loadable segments"),
        (lambda d: patched(d, 42, "<H", 0), "program headers of 0 bytes"),
        (lambda d: patched(d, 48, "<H", 0xFFFF), "truncated"),
        (lambda d: patched(d, 28, "<I", 0xFFFFFFF0), "truncated"),
        (lambda d: patched(d, 52 + 16, "<I", 0x7FFFFFFF), "segment"),
        (lambda d: patched(d, 52 + 20, "<I", 0xFFFFFFFF), "segment"),
        (lambda d: patched(d, 52 + 4, "<I", 0x00FFFFFF), "truncated"),
    ],
)
def test_bad_files_are_named(change: object, message: str, tmp_path: Path) -> None:
    assert callable(change)
    bad = tmp_path / "bad.elf"
    bad.write_bytes(change(build(PROGRAM).read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        Image.load(bad)
    assert "bad.elf" in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Image.load(tmp_path / "absent.elf")
    with pytest.raises(InputError, match="directory"):
        Image.load(tmp_path)


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, overwrite header fields with absurd numbers, or cut the file."""
    changed = bytearray(data)
    headers = [52 + 32 * i + 4 * j for i in range(3) for j in range(8)]
    section_table = struct.unpack_from("<I", data, 32)[0]
    headers += [section_table + 4 * i for i in range((len(data) - section_table) // 4)]
    for _ in range(rng.choice([1, 1, 2, 8, 40])):
        kind = rng.randrange(3)
        if kind == 0:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[rng.randrange(16, 52)] = rng.choice([0, 1, 0x7F, 0xFF])
        else:
            at = rng.choice(headers)
            if at + 4 <= len(changed):
                struct.pack_into("<I", changed, at, rng.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF]))
    keep = len(changed) if rng.randrange(4) else rng.randrange(len(changed))
    return bytes(changed[:keep])


@pytest.mark.slow("many random inputs")
def test_damaged_files_give_errors_or_results(tmp_path: Path) -> None:
    rng = random.Random(20120413)
    originals = [build(PROGRAM, v).read_bytes() for v in ("-gdwarf-4", "-gdwarf-5")]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = {"image": 0, "error": 0}
    slowest = 0.0
    for i in range(400):
        path = tmp_path / "damaged.elf"
        path.write_bytes(damage(originals[i % 2], rng))
        start = time.process_time()
        try:
            image = Image.load(path)
            for segment in image.segments:
                image.place(segment.addr)
                image.read(segment.addr, 64)
                image.constant(segment.addr, 4)
                image.thumb_at(segment.addr)
            image.addresses_of_line("prog.c", 13)
            outcomes["image"] += 1
        except WcetError:
            outcomes["error"] += 1
        slowest = max(slowest, time.process_time() - start)
    assert min(outcomes.values()) > 50
    assert slowest < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_of_sections_that_overlay_each_other_none_is_loaded(tmp_path: Path) -> None:
    """One of them runs, and the file does not say which."""
    elf = overlaid(tmp_path)
    image = Image.load(elf)
    assert image.read(0xFFFF0000, 4) is None
    assert image.constant(0xFFFF0000, 4) is None
    assert image.read(0x8000, 4) == bytes.fromhex("1eff2fe1")
    assert image.overlaid(0xFFFF0004) == ".first, .second overlay each other at 0xffff0004"
    assert image.overlaid(0x8000) is None
    with pytest.raises(UsageError, match=r"\.first, \.second overlay each other") as refused:
        extract(image, [0xFFFF0000])
    assert "--raw" in str(refused.value.hint)


def test_a_dump_says_which_overlay_runs(tmp_path: Path) -> None:
    elf, dump = overlaid(tmp_path), tmp_path / "second.bin"
    command = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".second", str(elf), str(dump)]
    subprocess.run(command, check=True)
    image = Image.load(elf, (RawMemory(0xFFFF0000, str(dump), writable=False),))
    assert image.constant(0xFFFF0000, 4) == 3
    assert image.overlaid(0xFFFF0000) is None


def test_segments_that_overlap_in_memory_are_refused(tmp_path: Path) -> None:
    """They are no overlays: at one place there is one content."""
    elf = bytearray(overlaid(tmp_path).read_bytes())
    at, size, count = struct.unpack_from("<I10xHH", elf, 28)
    for row in range(at, at + size * count, size):
        if struct.unpack_from("<I", elf, row + 8) == (0xFFFF0000,):
            struct.pack_into("<I", elf, row + 12, 0x9000)  # p_paddr
    bad = tmp_path / "bad.elf"
    bad.write_bytes(elf)
    with pytest.raises(InputError, match="segments overlap at 0xffff0000"):
        Image.load(bad)
