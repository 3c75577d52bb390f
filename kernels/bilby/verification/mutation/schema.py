# SPDX-License-Identifier: BSD-2-Clause
"""All faults in one host build (Untch et al., "Mutation analysis using mutant schemata", 1993).

Each place that a fault replaces becomes a choice by number, so that a fault is tried without
building anything. The choice computes the same as the fault's own build; a test compares.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.bilby.verification.mutation.fault import Edit, Place, Site
from kernels.bilby.verification.mutation.workshop import DROPPED, SOURCE, Workshop, globalize

HERE = Path(__file__).resolve().parent
WRONG = re.compile(r"^(?:\.\./)+([\w./-]+):(\d+):(?:\d+:)? error", re.M)
NOBODY = b"0x7eadbeefu"  # equals no case


@dataclass(frozen=True, slots=True)
class Numbered:
    number: int
    site: Site
    edit: Edit


class Schema:
    """The host build of one target with all of these faults; ``left_out``: did not compile."""

    def __init__(
        self, workshop: Workshop, texts: Mapping[str, bytes], faults: Iterable[Numbered]
    ) -> None:
        self.workshop = workshop
        self.folder = workshop.folder / "schema"
        (self.folder / "kernel").mkdir(parents=True)
        self.left_out: set[int] = set()
        self.faults = {fault.number: fault for fault in faults}
        self.path = self._build(texts)

    def numbers(self) -> list[int]:
        """The faults that are in this build."""
        return [
            number
            for number, fault in self.faults.items()
            if number not in self.left_out and self.workshop.uses(fault.site.file)
        ]

    def _build(self, texts: Mapping[str, bytes]) -> Path:
        size = max(self.faults, default=0) + 1
        selection = self.folder / "selection.o"
        compiler = ["gcc", "-m32", "-O1", f"-DMUTANTS={size}", "-c", str(HERE / "selection.c")]
        subprocess.run([*compiler, "-o", str(selection)], check=True)
        for file, source in texts.items():
            self._write(file, source)
        replaced = {}
        try:
            for command in self.workshop.host_commands:
                matches = [match[1] for word in command if (match := SOURCE.match(word))]
                if "-c" in command and matches:
                    original = command[command.index("-o") + 1]
                    made = self.folder / "kernel" / Path(original).name
                    words = [word for word in command[: command.index("-o")] if word not in DROPPED]
                    self._compile([*words, "-w", "-include", str(HERE / "selection.h"),
                                   "-o", str(made)], texts)  # fmt: skip
                    globalize(self.workshop.bilby, made)
                    replaced[original] = str(made)
        finally:
            for file, source in texts.items():
                (self.workshop.bilby / file).write_bytes(source)
        link = [replaced.get(word, word) for word in self.workshop.host_commands[-1]]
        link[link.index("-o") + 1] = str(self.folder / "serve")
        link.insert(link.index("-o"), str(selection))
        subprocess.run(link, cwd=self.workshop.host_folder, check=True)
        return self.folder / "serve"

    def _write(self, file: str, source: bytes) -> None:
        mine = [
            fault
            for fault in self.faults.values()
            if fault.site.file == file and fault.number not in self.left_out
        ]
        (self.workshop.bilby / file).write_bytes(choices(source, mine))

    def _compile(self, command: list[str], texts: Mapping[str, bytes]) -> None:
        """Faults on lines that the compiler refuses are left out."""
        for _ in range(200):
            done = subprocess.run(
                command, cwd=self.workshop.host_folder, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            if done.returncode == 0:
                return
            wrong = set(WRONG.findall(done.stderr))
            before = len(self.left_out)
            for file, line in wrong:
                self._leave_out(file, int(line), texts[file])
                self._write(file, texts[file])
            if len(self.left_out) == before:
                break
        raise ValueError(f"{' '.join(command)}:\n{done.stderr[:3000]}")

    def _leave_out(self, file: str, line: int, source: bytes) -> None:
        for fault in self.faults.values():
            place = fault.edit.place
            if fault.site.file == file:
                first = source.count(b"\n", 0, place.start) + 1
                if first <= line <= first + source.count(b"\n", place.start, place.end):
                    self.left_out.add(fault.number)


def choices(source: bytes, faults: Iterable[Numbered]) -> bytes:
    """The file with each fault as a choice; lines keep their numbers."""
    places: dict[tuple[int, int], list[Numbered]] = {}
    for fault in faults:
        place = fault.edit.place
        places.setdefault((place.start, place.end), []).append(fault)
    pieces, at = [], 0
    for start, end in sorted(places):
        assert start >= at, "one place is inside of another"
        pieces += [source[at:start], choice(source, places[start, end])]
        at = end
    return b"".join([*pieces, source[at:]])


def choice(source: bytes, faults: list[Numbered]) -> bytes:
    """Of one place."""
    place = faults[0].edit.place
    text = source[place.start : place.end]
    if place.shape == "statement":
        for fault in faults:
            text = b"if (mutant_is(%d)) { %s } else { %s }" % (
                fault.number, one_line(replaced(source, fault.edit, place)), text)  # fmt: skip
        return b"{ " + text + b" }"
    for fault in faults:
        if fault.edit.place.shape == "expression":
            text = b"(mutant_is(%d) ? (%s) : (%s))" % (
                fault.number, one_line(replaced(source, fault.edit, place)), text)  # fmt: skip
    cases = [fault for fault in faults if fault.edit.place.shape == "case"]
    if cases:
        tests = b" ".join(
            b"if (value_ == (%s) && mutant_is(%d)) value_ = %s;"
            % (fault.edit.place.label, fault.number, NOBODY)
            for fault in cases
        )
        text = b"(__extension__({ unsigned value_ = %s; %s value_; }))" % (text, tests)
    return text


def replaced(source: bytes, edit: Edit, place: Place) -> bytes:
    return source[place.start : edit.start] + edit.new + source[edit.end : place.end]


def one_line(text: bytes) -> bytes:
    return text.replace(b"\\\n", b" ").replace(b"\n", b" ")
