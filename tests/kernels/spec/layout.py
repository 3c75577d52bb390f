# SPDX-License-Identifier: BSD-2-Clause
"""What bits of memory mean: from ``objects.layout``, as the kernel's own accessors.

The specification itself knows capabilities and objects by the names of their fields only.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

BILBY = Path(__file__).resolve().parents[3] / "kernels" / "bilby"
WINDOW = 0xB0000000  # check/host/board.h
RAM = 0x80000000


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "bilby_layout_tool", BILBY / "tools" / "layout.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bilby_layout_tool"] = module
    spec.loader.exec_module(module)
    return module


# What differs between presets; those of "after".
TABLES = ("objects", "layouts/vspace_shadow", "layouts/abort_preemptible")
_RECORDS = _tool().parse(
    "".join((BILBY / f"{table}.layout").read_text(encoding="utf-8") for table in TABLES)
)
_CAPS: dict[int, Any] = {r.number: r for r in _RECORDS if r.kind == "capability"}
_OFFSETS = {
    (r.name, f.name): (f.offset, max(f.count, 1))
    for r in _RECORDS
    if r.kind == "object"
    for f in r.fields
}
SIZES: dict[str, int] = {r.name: r.size for r in _RECORDS if r.kind == "object"}


def decode_cap(first: int, second: int) -> tuple[str, dict[str, int]]:
    """Kind and fields of a capability's two words."""
    record = _CAPS[first & 0x1F]
    fields = {}
    for item in record.fields:
        value = ((first, second)[item.word] & item.mask) >> item.low
        fields[item.name] = (
            WINDOW | value << item.window if item.window is not None else value + item.plus
        )
    return str(record.name), fields


def has_field(kind: str, name: str) -> bool:
    return (kind, name) in _OFFSETS


def offset(kind: str, name: str) -> int:
    """Bytes from the start of an object to a field."""
    return int(_OFFSETS[kind, name][0])


def _numbers(text: str) -> dict[str, int]:
    found = re.findall(r"^#define\s+(\w+)\s+(0x[0-9a-fA-F]+|\d+)u?\b", text, re.M)
    return {name: int(value, 0) for name, value in found}


API = _numbers((BILBY / "include" / "bilby" / "api.h").read_text(encoding="utf-8"))
LIMITS = _numbers((BILBY / "include" / "limits.h").read_text(encoding="utf-8"))


def message(length: int, extra: int, unwrapped: int, label: int) -> int:
    """A message register."""
    return length | extra << 7 | unwrapped << 9 | (label << 12 & 0xFFFFFFFF)
