# SPDX-License-Identifier: BSD-2-Clause
"""How the C files of the kernel hang together: calls, who makes threads runnable, idioms."""

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
    wanted: dict[str, set[str]] = {name: set() for name in sources}
    files = [objects / f"{name}.o" for name in sources]
    for line in output(f"{CROSS}nm", "--print-file-name", *files).splitlines():
        file, *_, kind, symbol = line.replace(":", " ").split()
        name = Path(file).stem
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
    """Neither directly nor through others, so that each file can be read after its callees."""
    kernel = products.kernel(f"kzm-{preset}", "kernel.elf")
    shown = output("make", "--silent", "-C", BILBY, f"PRESET={preset}", "sources")
    sources = [name for name in shown.split() if name.endswith(".c")]
    calls = file_calls(kernel.parent / "obj", sources)
    assert calls["entries.c"] >= {"syscall.c", "fault.c"}
    assert circle(calls) == []


def test_a_circle_is_named() -> None:
    assert circle({"a.c": {"b.c"}, "b.c": {"c.c"}, "c.c": {"a.c"}, "d.c": {"a.c"}})[1:]
    assert not circle({"a.c": {"b.c", "c.c"}, "b.c": {"c.c"}, "c.c": set()})


def test_one_function_makes_threads_runnable() -> None:
    """Besides it who puts a waiting thread on a context, and the fastpath, which gives its own."""
    sources = [*(BILBY / "src").glob("*.c"), *(BILBY / "include").rglob("*.h")]
    places = {
        f"{path.parent.name}/{path.name}": len(found)
        for path in sources
        if (found := re.findall(r"\bstate = THREAD_RUNNING\b", path.read_text(encoding="utf-8")))
    }
    assert places == {
        "src/donation.c": 1,
        "src/fastpath.c": 1,
        "time_contexts/timing.h": 1,
        "time_slices/timing.h": 1,
    }


ANALYSIS = BILBY / "include" / "analysis.h"
IDIOM = re.compile(r"\*/\n(?:#define|static inline word_t) (\w+)")
UNUSUAL = re.compile(r"\b(?:__asm__|volatile|__builtin_unreachable)\b")


def kernel_sources() -> dict[str, str]:
    """The C text of the kernel without boards, machines and idioms, by path."""
    paths = [*(BILBY / "src").glob("*.c"), *(BILBY / "include").rglob("*.h")]
    return {str(path.relative_to(BILBY)): path.read_text() for path in paths if path != ANALYSIS}


def test_every_idiom_for_the_analysis_is_explained_and_used() -> None:
    text = ANALYSIS.read_text(encoding="utf-8")
    defined = set(re.findall(r"^(?:#define|static inline word_t) (\w+)[ (]", text, re.M))
    assert defined == set(IDIOM.findall(text))
    sources = "\n".join(kernel_sources().values())
    for name in defined:
        assert re.search(rf"\b{name}\b", sources), name


def test_other_files_have_no_idioms_of_their_own() -> None:
    """But for the two lines that put the current thread into a register."""
    found = {
        path: len(lines)
        for path, text in kernel_sources().items()
        if (lines := [line for line in text.splitlines() if UNUSUAL.search(line)])
    }
    assert found == {"include/kernel.h": 2}
