"""Random encodings that are instructions: the assembler reproduces them from objdump's text.

That excludes UNPREDICTABLE combinations of operands, bits that should be zero and are not, and
direct branches, whose text is relative to a section.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random

from tests.testing.arm.corpus import LINE

HEADER = (".syntax unified", ".arch armv7ve", ".arch_extension sec")
# unpredictable by the manual, though the assembler takes them: hints with write-back, pairs of
# equal registers, a bit field to the pc; waits; direct branches; ARMv8's floating point
LEFT_OUT = re.compile(
    r"(b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?|blx?|cbn?z|adr|it[te]*|wf[ei]|rfe\w*|setend)"
    r"(\.[nw])?$|(sb|ub|bf|s?strex|ldrex|swp)"
    r"|v(max|min)nm|vcvt[amnp]|vrint|vsel"
)
HINT_WITH_WRITEBACK = re.compile(r"pl[di]w?\s.*(!|\],)")
OTHER_MODE = re.compile(
    r"m(rs|sr)\w*\s.*_(usr|fiq|irq|svc|abt|und|mon|hyp)"
)  # unpredictable in some
TOP_BYTES = {False: (*range(0xE0, 0xF0), 0x00, 0xA0), True: range(0xE8, 0x100)}


def random_encodings(
    choice: Random, count: int, halfwords: Iterable[int] = ()
) -> list[tuple[bytes, bool]]:
    """Encodings with their instruction set; ``halfwords`` gives encodings of 16 bits."""
    found = []
    for thumb in (False, True):
        words = [_word(choice, thumb) for _ in range(count)]
        if thumb:
            words += [half.to_bytes(2, "little") + b"\0\xbf" for half in halfwords]
        found += [(raw, thumb) for raw in _accepted(words, thumb)]
    return found


def _word(choice: Random, thumb: bool) -> bytes:
    top = choice.choice(TOP_BYTES[thumb])
    if thumb:
        return bytes([choice.getrandbits(8), top, choice.getrandbits(8), choice.getrandbits(8)])
    return choice.getrandbits(24).to_bytes(3, "little") + bytes([top])


def _accepted(words: list[bytes], thumb: bool) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        lines = _texts(Path(folder), b"".join(words), thumb)
        while True:
            bad, raws = _assembled(Path(folder), [text for _, text in lines], thumb)
            if not bad:
                break
            lines = [line for number, line in enumerate(lines) if number not in bad]
    return [raw for (expected, _), raw in zip(lines, raws, strict=True) if raw == expected]


def _texts(folder: Path, code: bytes, thumb: bool) -> list[tuple[bytes, str]]:
    """The instructions that objdump decodes at every fourth byte, without unwanted ones."""
    blob = folder / "code.bin"
    blob.write_bytes(code)
    command = ["arm-none-eabi-objdump", "-D", "-w", "-z", "-b", "binary", "-marm"]
    command += ["-Mforce-thumb"] if thumb else []
    found = []
    for addr, raw, text in _lines([*command, str(blob)]):
        text = re.sub(r"\s*[@;].*", "", text)
        name = text.partition("\t")[0]
        unwanted = LEFT_OUT.match(name) or HINT_WITH_WRITEBACK.match(text) or OTHER_MODE.match(text)
        if "UN" in text.upper():
            continue
        if addr % 4 == 0 and text and not unwanted and not text.startswith("."):
            found.append((raw, text))
    return found


def _lines(command: list[str]) -> list[tuple[int, bytes, str]]:
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = []
    for line in output.splitlines():
        match = LINE.match(line)
        if match is not None:
            groups = match.group(2).split()
            raw = b"".join(bytes.fromhex(group)[::-1] for group in groups)
            found.append((int(match.group(1), 16), raw, match.group(3)))
    return found


def _assembled(folder: Path, texts: list[str], thumb: bool) -> tuple[set[int], list[bytes]]:
    """Lines that the assembler refuses or warns about; if there are none, the machine code."""
    source, made = folder / "code.s", folder / "code.o"
    head = [*HEADER, ".thumb" if thumb else ".arm"]
    source.write_text("\n".join([*head, *texts]) + "\n")
    command = ["arm-none-eabi-as", "-o", str(made), str(source)]
    messages = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    bad = {int(n) - len(head) - 1 for n in re.findall(r"code\.s:(\d+): ", messages)}
    if bad:
        return bad, []
    found = _lines(["arm-none-eabi-objdump", "-d", "-w", "-z", str(made)])
    return bad, [raw for _, raw, _ in found]
