"""All encodings of ARMv6K and ARMv7-A, their semantics, timing: ``python -m campaigns.encodings``.

Random words of every value of bits 31 to 20 and 7 to 4 (ARM), every 16-bit encoding, and random
ones for every first half of 32 bits (Thumb). A word is an instruction of an architecture if the
assembler accepts objdump's text for it; this excludes UNPREDICTABLE ones. Instructions of one name
share a row. With ``--write``, the table of ``docs/encodings.md`` is written. Ends with status 1
where an instruction of a core's architecture has no class and no reason is known.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from campaigns.decode_forms import ALWAYS, arm_words, thumb_words
from campaigns.documented import markdown, replace
from pipeline.core import CoreTable, load_core
from pipeline.demand import demand
from pipeline.timing_model import CoreProfile
from quoll.arm.coprocessor import DEBUG, SYSTEM, VFP, coprocessor_operation
from quoll.arm.decode import decode
from quoll.arm.insn import PC, ControlFlow, Insn
from quoll.errors import ControlFlowError, TimingError
from quoll.semantics.lift import lift
from quoll.semantics.ops import UNKNOWN_CODES, OpCode
from tests.testing.arm.corpus import LINE

__all__ = ["EVERY", "Table", "holes", "instructions", "tabulated", "written"]

ADDR = 0x1000
CORES = {
    "arm1136": (".arch armv6k", ".fpu vfpv2"),
    "cortex-a8": (".arch armv7-a", ".arch_extension sec", ".fpu neon"),
}
ALL = (".arch armv7ve", ".arch_extension sec", ".fpu neon-vfpv4")
EVERY = {**CORES, "all": ALL}
UNCONDITIONAL = range(0xF00, 0x1000)
# relative to a section; any other text has one encoding
RELATIVE = re.compile(r"(b|bl|blx|b\w\w|cbn?z|adr)(\.[nw])?$")
# Instructions with so many fixed bits that random words rarely match them; each is in some set.
RARE = (
    *(f"vmrs r0, {r}" for r in ("fpscr", "fpsid", "fpexc", "mvfr0", "mvfr1", "fpinst")),
    *(f"vmsr {r}, r0" for r in ("fpscr", "fpexc", "fpinst", "fpsid")),
    "vmrs apsr_nzcv, fpscr",
    *(f"srs{m} sp{w}, #19" for m in ("ia", "ib", "da", "db") for w in ("", "!")),
    *(f"rfe{m} r0{w}" for m in ("ia", "ib", "da", "db") for w in ("", "!")),
    *(f"cps{e} {f}" for e in ("ie", "id") for f in ("a", "i", "f", "if", "aif", "i, #19")),
    "cps #19",
    *(f"{b} {o}" for b in ("dmb", "dsb") for o in ("sy", "st", "ish", "ishst", "nsh", "osh")),
    *("isb sy", "clrex", "wfe", "wfi", "wfene", "wfine", "sev", "yield", "nop", "dbg #1"),
    *("setend le", "bxj r0", "bkpt #1", "svc #1", "smc #1", "hvc #1", "udf #1"),
    *("fldmiax r0!, {d0-d3}", "fldmdbx r0!, {d0-d3}", "fstmiax r0, {d0-d3}", "vpush {d8-d15}"),
    *("vpop {d8-d15}", "vldmdb r0!, {s0-s3}", "vstmia r0, {s0-s31}", "vmov r0, r1, d0"),
    *("vmov s0, s1, r0, r1", "vmov.8 d0[7], r0", "vmov.u16 r0, d0[3]", "vdup.8 q0, r0"),
    *("mrs r0, cpsr", "mrs r0, spsr", "msr cpsr_fsxc, r0", "msr spsr_fsxc, r0", "swp r0, r1, [r2]"),
    *("subs pc, lr, #4", "movs pc, lr", "eret", "ldm sp!, {r0-r12, pc}^", "ldm r0, {r0-r14}^"),
    *("tbb [r0, r1]", "tbh [r0, r1, lsl #1]", "pli [r0]", "pld [r0]", "pldw [r0]"),
    *(f"ldrex{s}" for s in (" r0, [r2]", "b r0, [r2]", "h r0, [r2]", "d r0, r1, [r2]")),
    *(f"strex{s}" for s in (" r3, r0, [r2]", "b r3, r0, [r2]", "h r3, r0, [r2]")),
    "strexd r3, r0, r1, [r2]",
)
IN_A_BLOCK = ("wfene", "wfine")
MOST_WORDS = 33  # of fldmx and fstmx


@dataclass(slots=True)
class Row:
    """The properties of the instructions of one name."""

    sets: set[str] = field(default_factory=set)
    decoded: set[str] = field(default_factory=set)
    semantics: set[str] = field(default_factory=set)
    timing: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


Table = dict[str, Row]


def instructions(
    words: Iterable[bytes], thumb: bool, heads: Mapping[str, tuple[str, ...]] = EVERY
) -> list[tuple[bytes, str, frozenset[str]]]:
    """The instructions among ``words`` (4 bytes each): bytes, text, and who accepts them.

    ``heads`` are assembler directives that choose an architecture, by its name.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = _texts(Path(folder), b"".join(words), thumb)
        taken = {name: _taken(Path(folder), lines, thumb, head) for name, head in heads.items()}
    return [
        (raw, text, frozenset(name for name in heads if number in taken[name]))
        for number, (raw, text) in enumerate(lines)
        if any(number in found for found in taken.values())
    ]


def _texts(folder: Path, code: bytes, thumb: bool) -> list[tuple[bytes, str]]:
    blob = folder / "code.bin"
    blob.write_bytes(code)
    command = ["arm-none-eabi-objdump", "-D", "-w", "-z", "-b", "binary", "-marm"]
    command += ["-Mforce-thumb"] if thumb else []
    output = subprocess.run([*command, str(blob)], capture_output=True, text=True, check=True)
    found = []
    for line in output.stdout.splitlines():
        match = LINE.match(line)
        if match is None or int(match.group(1), 16) % 4 or "UN" in match.group(3).upper():
            continue
        raw = b"".join(bytes.fromhex(group)[::-1] for group in match.group(2).split())
        text = re.sub(r"\s*[@;].*", "", match.group(3))
        if text and not text.startswith(".") and "illegal" not in text:
            found.append((raw, text))
    return found


def written(thumb: bool) -> list[bytes]:
    """The encodings of ``RARE`` that the instruction set has."""
    texts = list(RARE)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "code.s", Path(folder) / "code.o"
        while True:
            top = [".syntax unified", *ALL, ".thumb" if thumb else ".arm"]
            lines = [f"it ne\n{t}" if thumb and t in IN_A_BLOCK else t for t in texts]
            rows = "\n".join([*top, *lines]).split("\n")
            source.write_text("\n".join(rows) + "\n")
            command = ["arm-none-eabi-as", "-o", str(made), str(source)]
            messages = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            bad = {rows[int(n) - 1] for n in re.findall(r"code\.s:(\d+): Error", messages)}
            if not bad:
                break
            texts = [text for text in texts if text not in bad]
        command = ["arm-none-eabi-objdump", "-d", "-w", "-z", str(made)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    groups = [match.group(2).split() for match in map(LINE.match, output.splitlines()) if match]
    return [b"".join(bytes.fromhex(group)[::-1] for group in of) for of in groups]


def _taken(
    folder: Path, lines: list[tuple[bytes, str]], thumb: bool, head: tuple[str, ...]
) -> set[int]:
    """The lines that the assembler accepts for an architecture, with the same bytes."""
    source, made = folder / "code.s", folder / "code.o"
    left = list(range(len(lines)))
    while True:
        top = [".syntax unified", *head, ".thumb" if thumb else ".arm"]
        source.write_text("\n".join([*top, *(lines[n][1] for n in left)]) + "\n")
        command = ["arm-none-eabi-as", "-o", str(made), str(source)]
        messages = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        bad = {int(n) - len(top) - 1 for n in re.findall(r"code\.s:(\d+): ", messages)}
        if not bad:
            break
        left = [n for position, n in enumerate(left) if position not in bad]
    command = ["arm-none-eabi-objdump", "-d", "-w", "-z", str(made)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    groups = [match.group(2).split() for match in map(LINE.match, output.splitlines()) if match]
    raws = [b"".join(bytes.fromhex(group)[::-1] for group in of) for of in groups]
    return {
        n
        for n, raw in zip(left, raws, strict=True)
        if raw == lines[n][0] or RELATIVE.match(lines[n][1].split()[0])
    }


def tabulated(found: Iterable[tuple[bytes, str, frozenset[str]]], thumb: bool, table: Table) -> int:
    """The number of instructions, after adding their properties to ``table``."""
    cores = {name: load_core(name, CoreProfile.WCET) for name in CORES}
    count = 0
    for raw, text, architectures in found:
        count += 1
        insn = decode(raw, ADDR, thumb)
        row = table.setdefault(_name(insn, text), Row())
        row.sets.add("Thumb" if thumb else "ARM")
        row.decoded.add("no" if insn.flow is ControlFlow.UNDEFINED else "yes")
        row.semantics.add(_semantics(insn))
        for name, core in cores.items():
            known = name in architectures
            row.timing[name].add(_timing(core, insn) if known else "not in the core")
    return count


def _name(insn: Insn, text: str) -> str:
    """The mnemonic of later stages; objdump's for an undecoded instruction."""
    return (
        text.split()[0].partition(".")[0] if insn.flow is ControlFlow.UNDEFINED else insn.mnemonic
    )


def _semantics(insn: Insn) -> str:
    if insn.flow is ControlFlow.UNDEFINED:
        return "an error of extraction"
    if insn.flow is ControlFlow.WAIT:
        return "no duration: ends the path, or is asked about"
    try:
        codes = {op.code for op in lift(insn)}
    except ControlFlowError as error:
        return f"refused: {error.message.partition(':')[0]}"
    if OpCode.TRAP in codes:
        return "takes an exception"
    if insn.flow is ControlFlow.EXCEPTION_RETURN:
        return "ends the path"
    return "some results unknown" if codes & UNKNOWN_CODES else "exact"


def _timing(core: CoreTable, insn: Insn) -> str:
    try:
        demand(core, insn, aligned=True, aligned8=False)
    except TimingError:
        return _reason(insn) or f"HOLE: {insn.text}"
    return "yes"


def _reason(insn: Insn) -> str | None:
    """The reason why an instruction of the architecture has no class."""
    if insn.flow is ControlFlow.UNDEFINED:
        return "an error of extraction"
    too_many = insn.memory is not None and insn.memory.count > MOST_WORDS
    if PC in insn.writes or too_many:
        return "unpredictable with these operands"
    number = insn.encoding >> 8 & 15
    found = coprocessor_operation(insn)
    if found is None and insn.mnemonic not in ("ldc", "stc"):
        return None
    if number in VFP:
        return None
    if number not in (DEBUG, SYSTEM):
        return "no such coprocessor"
    if found is None or number == DEBUG:
        return "debug and trace"
    return "refused: no known effect on caches and translation"


def holes(table: Table) -> list[str]:
    """The instructions without a class and without a reason."""
    return [
        f"{name}, {core}: {text}"
        for name, row in sorted(table.items())
        for core, texts in row.timing.items()
        for text in sorted(texts)
        if text.startswith("HOLE")
    ]


def _rows(table: Table) -> list[tuple[str, ...]]:
    """The rows; names with the same cells share one."""
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, row in sorted(table.items()):
        cells = (row.sets, row.decoded, row.semantics, *(row.timing[core] for core in CORES))
        together[tuple("; ".join(sorted(cell)) for cell in cells)].append(name)
    rows = [(" ".join(f"`{n}`" for n in names), *cells) for cells, names in together.items()]
    return sorted(rows, key=lambda row: (row[1:], row[0]))


def sample(random: Random, each: int, table: Table) -> Counter[str]:
    """The number of instructions among ``each`` random words of every form, added to ``table``."""
    count: Counter[str] = Counter()
    arm = [raw for raw, *_ in arm_words(random, [*ALWAYS, *UNCONDITIONAL], each)]
    count["ARM"] = tabulated(instructions(arm, thumb=False), thumb=False, table=table)
    thumb = [raw.ljust(4, b"\xbf") for raw, *_ in thumb_words(random, each)]
    thumb = [raw if raw[2:] != b"\xbf\xbf" else raw[:2] + b"\x00\xbf" for raw in thumb]
    rare = [(raw, "rare", frozenset(EVERY)) for raw in written(thumb=False)]
    count["ARM"] += tabulated(rare, thumb=False, table=table)
    rare = [(raw, "rare", frozenset(["cortex-a8", "all"])) for raw in written(thumb=True)]
    count["Thumb"] += tabulated(rare, thumb=True, table=table)
    count["Thumb"] += tabulated(instructions(thumb, thumb=True), thumb=True, table=table)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description="Encodings: decoded, semantics, timing.")
    parser.add_argument("--each", type=int, default=8, help="words of each form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write docs/encodings.md")
    options = parser.parse_args()
    table: Table = {}
    count = sample(Random(options.seed), options.each, table)
    wrong = holes(table)
    for text in wrong:
        print(text)
    print(f"{count['ARM']:,} ARM, {count['Thumb']:,} Thumb encodings of {len(table)} names: "
          f"{len(wrong)} holes")  # fmt: skip
    if options.write:
        head = ("instructions", "sets", "decoded", "semantics", "timing: ARM1136", "Cortex-A8")
        replace("encodings.md", "encodings", markdown(head, _rows(table)))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
