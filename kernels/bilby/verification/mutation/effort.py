# SPDX-License-Identifier: BSD-2-Clause
"""All faults of the kernel, each tried on the targets that have it, at levels of effort."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernels.bilby.verification.mutation.emulator import Emulator
from kernels.bilby.verification.mutation.fault import Site
from kernels.bilby.verification.mutation.instructions import instructions, is_assembly
from kernels.bilby.verification.mutation.journal import Entry, Journal
from kernels.bilby.verification.mutation.judge import BY_HAND, Found, Judge, Trial, operations_trial
from kernels.bilby.verification.mutation.schema import Numbered, Schema
from kernels.bilby.verification.mutation.statements import families, sites
from kernels.bilby.verification.mutation.workshop import BILBY, Target, Workshop

TARGETS = [
    Target("kzm", "after"),
    Target("kzm", "before"),
    Target("kzm", "latency"),
    Target("kzm", "latency", "l1"),
    Target("kzm", "mcs"),
]
IN_QEMU_ONLY = [Target("cubieboard", "after")]  # the host build is the same on all boards
PARTS = ("src/*.[chS]", "include/**/*.h", "machine/**/*.h", "boards/*/interrupts.h",
         "boards/*/tick.h")  # fmt: skip
BOOT = "src/boot.c"
IN_QEMU = 3  # the level of effort at which programs run
EDITS = 4  # of a statement: the first that changes the object code is its fault


def sources() -> dict[str, bytes]:
    """Text by name."""
    files = sorted(path for part in PARTS for path in BILBY.glob(part))
    return {path.relative_to(BILBY).as_posix(): path.read_bytes() for path in files}


class Effort:
    def __init__(self, folder: Path, journal: Journal, seed: int, wanted: Sequence[str]) -> None:
        self.folder = folder
        self.journal = journal
        self.texts = sources()
        following = families(self.texts)
        every = [
            site
            for file, text in self.texts.items()
            for site in (
                instructions(file, text) if is_assembly(file) else sites(file, text, following)
            )
        ]
        self.every = every
        self.faults = {
            name(site): [
                Numbered(EDITS * i + j + 1, site, edit)
                for j, edit in enumerate(site.order(seed)[:EDITS])
            ]
            for i, site in enumerate(every)
        }
        self.size = EDITS * len(every) + 1
        self.sites = [s for s in every if not wanted or any(word in s.file for word in wanted)]
        random.Random(seed).shuffle(self.sites)  # so that a part of a run is a sample
        self.kills: Counter[tuple[str, str]] = Counter()
        for entry in journal.entries.values():
            if entry.fault is not None and entry.is_found:
                self.learn(entry.fault.file, entry.where)
        self._workshops: dict[str, Workshop] = {}
        self._schemas: dict[str, Schema] = {}
        self._judges: dict[str, Judge] = {}
        self._emulators: dict[str, Emulator] = {}

    def learn(self, file: str, where: str) -> None:
        self.kills[file, where] += 1
        self.kills["", where] += 1

    def workshop(self, target: Target) -> Workshop:
        if target.name not in self._workshops:
            self._workshops[target.name] = Workshop(self.folder, target)
        return self._workshops[target.name]

    def judge(self, target: Target) -> Judge:
        if target.name not in self._judges:
            every = [fault for faults in self.faults.values() for fault in faults]
            schema = Schema(self.workshop(target), self.texts, every)
            self._schemas[target.name] = schema
            self._judges[target.name] = Judge(schema.path, target.preset, self.size)
        return self._judges[target.name]

    def emulator(self, target: Target) -> Emulator:
        if target.name not in self._emulators:
            self._emulators[target.name] = Emulator(self.workshop(target))
        return self._emulators[target.name]

    def has(self, target: Target, fault: Numbered) -> bool:
        """Whether this fault is in the host build of a target."""
        if not self.workshop(target).uses(fault.site.file):
            return False
        if target in IN_QEMU_ONLY:
            return True
        self.judge(target)
        return fault.number not in self._schemas[target.name].left_out

    def changes_code(self, fault: Numbered) -> bool:
        """The object code of some target."""
        text = self.texts[fault.site.file]
        return any(
            self.workshop(target).uses(fault.site.file)
            and self.workshop(target).changes_code(fault.site.file, text, fault.edit)
            for target in (*TARGETS, *IN_QEMU_ONLY)
        )

    def fault_of(self, site: Site, entry: Entry | None) -> Numbered | None:
        """The statement's fault: of the first edit, or the one that an entry has."""
        for fault in self.faults[name(site)]:
            if entry is None and self.is_anywhere(fault):
                return fault
            if entry is not None and site.fault(fault.edit, self.texts[site.file]) == entry.fault:
                return fault
        return None

    def next_of(self, site: Site, fault: Numbered) -> Numbered | None:
        later = [f for f in self.faults[name(site)] if f.number > fault.number]
        return next((fault for fault in later if self.is_anywhere(fault)), None)

    def is_anywhere(self, fault: Numbered) -> bool:
        return any(self.has(target, fault) for target in (*TARGETS, *IN_QEMU_ONLY))

    def try_level(self, fault: Numbered, level: int) -> Found | None:
        for target in (*TARGETS, *IN_QEMU_ONLY) if level == IN_QEMU else TARGETS:
            if not self.has(target, fault):
                continue
            if level == IN_QEMU:
                text = self.texts[fault.site.file]
                found = self.emulator(target).find(fault.site.file, text, fault.edit)
            else:
                trials = self.trials(fault.site.file, level, target == TARGETS[0])
                found = self.judge(target).find(fault.number, trials)
            if found is not None:
                self.learn(fault.site.file, found.where)
                return found
            if level == 1:
                break
        return None

    def trials(self, file: str, level: int, is_first: bool) -> list[Trial]:
        """1: by hand, the first target. 2: every target, and operations; from 4 on more of them."""

        def rank(trial: Trial) -> tuple[int, int]:
            return -self.kills[file, trial.name], -self.kills["", trial.name]

        by_hand = [trial for trial in BY_HAND if not trial.boots or file == BOOT]
        if level == 1:
            return sorted(by_hand, key=rank)
        few = operations_trial(300, 1)
        if level == 2:
            return [few] if is_first else [*sorted(by_hand, key=rank), few]
        return [operations_trial(1000 * 4 ** (level - 4), level)]

    def run(self, level: int) -> Iterator[Entry]:
        """The trials of a level, in sequence."""
        for site in self.sites:
            before = self.journal.entries.get(name(site))
            if before is not None and (
                before.fault is None or before.is_found or before.level >= level
            ):
                continue
            fault = self.fault_of(site, before)
            while fault is not None:
                found = self.try_level(fault, level)
                is_new = before is None or before.level == 0
                if found is None and is_new and not self.changes_code(fault):
                    fault = self.next_of(site, fault)
                    continue
                made = site.fault(fault.edit, self.texts[site.file])
                how, where = (found.how, found.where) if found else ("", "")
                yield Entry(name(site), made, level, how, where)
                break
            else:
                yield Entry(name(site), None)


def name(site: Site) -> str:
    return f"{site.file}: {site.function}: {site.text} #{site.nth}"
