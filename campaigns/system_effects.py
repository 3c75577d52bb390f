"""The table of docs/system-effects.md: ``python -m campaigns.system_effects``."""

from __future__ import annotations

from campaigns.documented import markdown, replace
from campaigns.system_instructions import Column, SystemInstruction, rows

__all__ = ["table"]


def table() -> str:
    """One row for each kind of instruction and register; similar registers share a row."""
    together: dict[tuple[str, ...], list[SystemInstruction]] = {}
    for row in rows():
        together.setdefault((row.section, *_cells(row)), []).append(row)
    head = ("instructions", "manual", *(stage.value for stage in Column))
    return markdown(head, ((_names(alike), *cells) for cells, alike in together.items()))


def _names(alike: list[SystemInstruction]) -> str:
    return "; ".join(dict.fromkeys(row.name for row in alike))


def _cells(row: SystemInstruction) -> list[str]:
    found = (row.treatments.get(stage) for stage in Column)
    return ["" if t is None else f"{t.text} (`{t.code.replace(':', '.')}`)" for t in found]


if __name__ == "__main__":
    replace("system-effects.md", "system effects", table())
