# SPDX-License-Identifier: BSD-2-Clause
"""The C files of the kernel call each other without a circle, and threads run from one place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.testing.bilby.build import BILBY, CROSS, PRESETS, output
from tests.testing.harness import build as products


def file_calls(objects: Path, sources: list[str]) -> dict[str, set[str]]:
    """For each C file, the C files with functions that it names."""
    defined: dict[str, str] = {}
    wanted: dict[str, set[str]] = {}
    for name in sources:
        wanted[name] = set()
        for line in output(f"{CROSS}nm", objects / f"{name}.o").splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "T":
                defined[symbol] = name
            elif kind == "U":
                wanted[name].add(symbol)
    return {
        name: {defined[symbol] for symbol in symbols if symbol in defined}
        for name, symbols in wanted.items()
    }


def circle(calls: Mapping[str, Set[str]]) -> list[str]:
    """Files of which each is called by the next, the first and last the same; or none."""
    try:
        list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("preset", PRESETS)
def test_no_two_files_call_each_other(preset: str) -> None:
    """Neither directly nor through others, so that each can be read after those it calls."""
    kernel = products.kernel(f"kzm-{preset}")
    shown = output("make", "--silent", "-C", BILBY, f"PRESET={preset}", "sources")
    sources = [name for name in shown.split() if name.endswith(".c")]
    calls = file_calls(kernel.parent / "obj", sources)
    assert calls["entries.c"] >= {"syscall.c", "fault.c"}
    assert circle(calls) == []


def test_a_circle_is_named() -> None:
    assert circle({"a.c": {"b.c"}, "b.c": {"c.c"}, "c.c": {"a.c"}, "d.c": {"a.c"}})[1:]
    assert not circle({"a.c": {"b.c", "c.c"}, "b.c": {"c.c"}, "c.c": set()})


def test_one_function_makes_threads_runnable() -> None:
    """Besides it only the fastpath, which gives its own context away with the message."""
    sources = [*(BILBY / "src").glob("*.c"), *(BILBY / "include").rglob("*.h")]
    places = {
        f"{path.parent.name}/{path.name}": len(found)
        for path in sources
        if (found := re.findall(r"\bstate = THREAD_RUNNING\b", path.read_text(encoding="utf-8")))
    }
    assert places == {
        "src/fastpath.c": 1,
        "time_contexts/timing.h": 1,
        "time_slices/timing.h": 1,
    }
