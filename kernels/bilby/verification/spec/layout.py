# SPDX-License-Identifier: BSD-2-Clause
"""The layout of memory, from ``objects.layout``, as in the kernel's own accessors.

The specification itself uses only the field names of capabilities and objects.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

BILBY = Path(__file__).resolve().parents[2]
HOST = BILBY / "verification" / "check" / "host"
WINDOW = 0xB0000000  # of the host build
RAM = 0x8A000000


@cache
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


_CAPS: dict[int, Any] = {}
_OFFSETS: dict[tuple[str, str], int] = {}
_BYTES: dict[tuple[str, str], int] = {}
SIZES: dict[str, int] = {}  # bytes of an object, by its name


@cache
def _records(preset: str) -> list[Any]:
    make = ["make", "--silent", "--no-print-directory", "-C", str(BILBY)]
    done = subprocess.run(
        [*make, f"PRESET={preset}", "tables"], capture_output=True, text=True, check=True
    )
    tables = [(BILBY / name).read_text(encoding="utf-8") for name in done.stdout.split()]
    return list(_tool().parse("".join(tables)))


def use(preset: str) -> None:
    """Select the layout of a preset."""
    records = _records(preset)
    for table in (_CAPS, _OFFSETS, _BYTES, SIZES):
        table.clear()
    _CAPS.update({r.number: r for r in records if r.kind == "capability"})
    objects = [r for r in records if r.kind == "object"]
    _OFFSETS.update({(r.name, f.name): f.offset for r in objects for f in r.fields})
    bytes_of = _tool().field_bytes
    _BYTES.update({(r.name, f.name): bytes_of(f) for r in objects for f in r.fields})
    SIZES.update({r.name: r.size for r in objects})


def decode_cap(first: int, second: int) -> tuple[str, dict[str, int]]:
    """Kind and fields of a capability's two words; but marks of lookups that threads keep."""
    record = _CAPS[first & 0x1F]
    fields = {}
    for item in record.fields:
        if item.name == "passed":
            continue
        value = ((first, second)[item.word] & item.mask) >> item.low
        fields[item.name] = (
            WINDOW | value << item.window if item.window is not None else value + item.plus
        )
    return str(record.name), fields


def cap_fields(kind: str) -> set[str]:
    """The fields of a kind of capability."""
    return {f.name for r in _CAPS.values() if r.name == kind for f in r.fields}


def read_field(read: Callable[[int], int], kind: str, address: int, name: str) -> int:
    """A field of an object at an address: a word, two, or a byte of one."""
    at = address + _OFFSETS[kind, name]
    if _BYTES[kind, name] == 8:
        return read(at) | read(at + 4) << 32
    return read(at) if _BYTES[kind, name] != 1 else read(at & ~3) >> 8 * (at & 3) & 0xFF


def has_field(kind: str, name: str) -> bool:
    return (kind, name) in _OFFSETS


def offset(kind: str, name: str) -> int:
    """Bytes from the start of an object to a field."""
    return _OFFSETS[kind, name]


def _numbers(text: str) -> dict[str, int]:
    found = re.findall(r"^#define\s+(\w+)\s+(0x[0-9a-fA-F]+|\d+)u?\b", text, re.M)
    return {name: int(value, 0) for name, value in found}


API = _numbers((BILBY / "include" / "bilby" / "api.h").read_text(encoding="utf-8"))
LIMITS = _numbers((BILBY / "include" / "limits.h").read_text(encoding="utf-8"))
TICK = _numbers((HOST / "board.h").read_text(encoding="utf-8"))["TICK_IRQ"]
SLICE = _numbers((HOST / "clock.h").read_text(encoding="utf-8"))["SLICE_TICKS"]
_BUDGETS = _numbers((HOST / "budget.h").read_text(encoding="utf-8"))  # ticks
BUDGET_MIN, BUDGET_LEAST = _BUDGETS["BUDGET_MIN"], _BUDGETS["BUDGET_LEAST"]


def message(length: int, extra: int, unwrapped: int, label: int) -> int:
    """A message register."""
    return length | extra << 7 | unwrapped << 9 | (label << 12 & 0xFFFFFFFF)


use("after")
