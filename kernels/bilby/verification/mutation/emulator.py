# SPDX-License-Identifier: BSD-2-Clause
"""The programs of ``user/tests.c`` in QEMU, on a kernel with one fault.

They find faults that the host build cannot show: in boot's results, and in the view of threads and
devices. Where time is a capability, programs that measure budgets and delays run, too. Caches and
barriers, which QEMU does not show either, are compared with ``machine/*/operations.toml`` before.
"""

from __future__ import annotations

import gc
import os
import select
import shutil
import subprocess
from pathlib import Path

from unicorn import UcError

from kernels.bilby.verification.mutation.fault import Edit
from kernels.bilby.verification.mutation.judge import Found
from kernels.bilby.verification.mutation.workshop import Workshop
from tests.testing.bilby.boot_runs import wrong_boot, wrong_entries, wrong_locking
from tests.testing.bilby.device_writes import other_writes
from tests.testing.bilby.it_blocks import wrong_state
from tests.testing.bilby.operations import MACHINES, differences, of_assembly, of_headers

OF_A_MACHINE = ("machine/", "src/entry.S", "src/boot.S", "src/pin_l1_lock.S", "src/vectors.S")
SECONDS = 60  # twenty times the need of the programs
QUIET_SECONDS = 12  # ten times the need of the longest of them
PROGRAMS = ("tests",)
MEASURING = {"mcs": ("signals", "budgets")}  # more of them, by preset


class Emulator:
    """One target. Raises ValueError if the programs fail without a fault."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.build = workshop.folder / "build" / "bilby" / workshop.target.name
        self.programs = PROGRAMS + MEASURING.get(workshop.target.preset, ())
        self.clean = self.build.with_name(f"{self.build.name}-clean")
        shutil.copytree(self.build / "obj", self.clean)
        failure = self._first_failure()
        if failure is not None:
            raise ValueError(f"{workshop.target.name}: {failure.where}: {failure.how}")

    def find(self, file: str, source: bytes, edit: Edit) -> Found | None:
        """How the programs fail with this fault; None if they pass, or it cannot be compiled."""
        names = self.workshop.uses(file)
        place = self.workshop.bilby / file
        place.write_bytes(edit.apply(source))
        try:
            if not all(map(self.workshop.compile, names)):
                return None
            self.workshop.link()
            if file.startswith("boards/"):
                told = other_writes(
                    self.workshop.target.board, self.workshop.bilby, self.workshop.folder
                )
                if told:
                    return Found(told[0], "registers.toml")
            if file.startswith(OF_A_MACHINE):
                found = self._other_operations()
                if found is not None:
                    return found
            return self._first_failure()
        finally:
            place.write_bytes(source)
            for name in names:
                made = f"{Path(name).name}.o"
                shutil.copy2(self.clean / made, self.build / "obj" / made)

    def _other_operations(self) -> Found | None:
        """Wrong coprocessor accesses and barriers, missing boot operations, or a missing block."""
        machine, kernel = MACHINES[self.workshop.target.board], self.build / "kernel.elf"
        headers = of_headers(machine, self.workshop.bilby, self.workshop.folder)
        told = differences(machine, headers | of_assembly(kernel))
        if told:
            return Found(told[0], "operations.toml")
        try:
            wrong = wrong_boot(kernel, machine) or wrong_entries(kernel)
            if not wrong and machine == "cortex-a8":
                wrong = wrong_state(self.workshop.bilby, self.workshop.folder)
            if not wrong and self.workshop.target.pin == "l1":
                wrong = wrong_locking(kernel)
        except (UcError, ValueError, KeyError) as failure:
            wrong = f"boot ends: {failure}"
        gc.collect()  # each core takes 1 GiB of addresses
        return Found(f"in a core, {wrong}", "pieces in a core") if wrong else None

    def _first_failure(self) -> Found | None:
        """Of the first program that does not pass."""
        for program in self.programs:
            failure = self._run(program)
            if failure is not None:
                return Found(failure, f"{program} in QEMU")
        return None

    def _run(self, program: str) -> str | None:
        with subprocess.Popen(
            [str(self.workshop.bilby / "run"), self.workshop.target.name, program],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=os.environ | {"BILBY_TIMEOUT": str(SECONDS)},
        ) as process:  # fmt: skip
            output, is_quiet = read_while_it_talks(process)
            if is_quiet:
                process.terminate()
        if process.returncode == 0 and not is_quiet:
            return None
        lines = output.decode(errors="replace").splitlines()
        failed = [line for line in lines if line.startswith("not ok")]
        if is_quiet and not failed:
            return f"nothing comes for {QUIET_SECONDS} s after {len(lines)} lines"
        return failed[0] if failed else f"the programs end with status {process.returncode}"


def read_while_it_talks(process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """All output; and whether there was none for long, and it has not ended."""
    assert process.stdout is not None
    pieces: list[bytes] = []
    while select.select([process.stdout], [], [], QUIET_SECONDS)[0]:
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            return b"".join(pieces), False
        pieces.append(piece)
    return b"".join(pieces), True
