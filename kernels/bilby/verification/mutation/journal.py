# SPDX-License-Identifier: BSD-2-Clause
"""The trials, one line of JSON each, written at once, so that a stopped run can continue."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernels.bilby.verification.mutation.fault import Fault


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement: its fault, and the test and level of effort that found it, if any.

    ``fault`` is missing if no edit of the statement changes the object code.
    """

    site: str
    fault: Fault | None
    level: int = 0  # the highest that was tried
    how: str = ""
    where: str = ""

    @property
    def is_found(self) -> bool:
        return bool(self.how)


class Journal:
    """The last entry of each statement counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                fault = Fault(**row["fault"]) if row["fault"] else None
                self.entries[row["site"]] = Entry(**(row | {"fault": fault}))

    def add(self, entry: Entry) -> None:
        self.entries[entry.site] = entry
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry), ensure_ascii=False) + "\n")

    def forget_levels(self) -> None:
        """Faults that were not found are tried again from the first level."""
        for entry in list(self.entries.values()):
            if entry.fault is not None and not entry.is_found and entry.level:
                self.add(replace(entry, level=0))
