# SPDX-License-Identifier: BSD-2-Clause
"""The programs of ``user/tests.c`` in QEMU, on a kernel with one fault.

They find what the host build cannot show: what boot leaves, what threads and devices see.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from kernels.bilby.mutation.fault import Edit
from kernels.bilby.mutation.judge import Found
from kernels.bilby.mutation.workshop import Workshop

SECONDS = 60  # twenty times what the programs need
PROGRAM = "tests"


class Emulator:
    """One target. Raises ValueError if the programs fail without a fault."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.build = workshop.folder / "build" / "bilby" / workshop.target.name
        self.clean = self.build.with_name(f"{self.build.name}-clean")
        shutil.copytree(self.build / "obj", self.clean)
        failure = self._run()
        if failure is not None:
            raise ValueError(f"{workshop.target.name}: {PROGRAM}: {failure}")

    def find(self, file: str, source: bytes, edit: Edit) -> Found | None:
        """How the programs fail with this fault; None if they pass, or it cannot be compiled."""
        names = self.workshop.uses(file)
        place = self.workshop.bilby / file
        place.write_bytes(edit.apply(source))
        try:
            if not all(map(self.workshop.compile, names)):
                return None
            self.workshop.link()
            failure = self._run()
        finally:
            place.write_bytes(source)
            for name in names:
                made = f"{Path(name).name}.o"
                shutil.copy2(self.clean / made, self.build / "obj" / made)
        return None if failure is None else Found(failure, f"{PROGRAM} in QEMU")

    def _run(self) -> str | None:
        done = subprocess.run(
            [str(self.workshop.bilby / "run"), self.workshop.target.name, PROGRAM],
            capture_output=True, text=True, errors="replace", check=False,
            env=os.environ | {"BILBY_TIMEOUT": str(SECONDS)},
        )  # fmt: skip
        if done.returncode == 0:
            return None
        failed = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
        return failed[0] if failed else f"the programs end with status {done.returncode}"
