# SPDX-License-Identifier: BSD-2-Clause
"""Why a fault that nothing finds is none: ``equivalent.toml``, kept by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernels.bilby.verification.mutation.fault import Fault

PLACE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Reason:
    """Of the faults of one statement; of one of them, if ``new`` is given.

    ``nth``: of the statements of this function with the same text, from 0; all if it is missing.
    """

    file: str
    function: str
    old: str
    why: str
    new: str | None = None
    nth: int | None = None

    def covers(self, fault: Fault) -> bool:
        return (
            (self.file, self.function, self.old) == (fault.file, fault.function, fault.old)
            and self.new in (None, fault.new)
            and self.nth in (None, fault.nth)
        )


def read_reasons(place: Path = PLACE) -> list[Reason]:
    """Raises TypeError if a row has another key, or lacks one."""
    rows = tomllib.loads(place.read_text(encoding="utf-8")).get("reason", [])
    return [Reason(**row) for row in rows]


def why(fault: Fault, reasons: Iterable[Reason]) -> str:
    """Empty if nobody has said."""
    return next((reason.why for reason in reasons if reason.covers(fault)), "")
