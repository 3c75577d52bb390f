"""What is written down of a result, to be compared with later ones: a small JSON document.

Of each worst path: the cycles of every source line by function, and the bounds of its loops. A line
is known by its function and its text, so that moved lines and renamed files are still the same.
Addresses are left out, for they move with every build.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ilp.paths.outline import outline
from quoll.errors import InputError
from quoll.image.inputs import Unreadable, read_input
from wcet.analysis.result import EntryResult, Result
from wcet.reports.path_text import read_source

__all__ = [
    "LARGEST",
    "LATENCY",
    "EntryRecord",
    "LineRecord",
    "LoopRecord",
    "Record",
    "read",
    "recorded",
    "to_json",
]

SCHEMA_VERSION = 1
LARGEST = 64 << 20  # bytes of a record
LATENCY = "interrupt latency"  # in the place of an entry
ADDRESS = re.compile(r"0x[0-9a-f]{8}|\+0x[0-9a-f]+|(?<=:)[0-9]+\b")


@dataclass(frozen=True, slots=True)
class LineRecord:
    """A source line on a worst path; ``text`` is "" if its file is not there."""

    function: str
    path: str
    line: int
    text: str
    runs: int  # of its block that executes most often
    cycles: int


@dataclass(frozen=True, slots=True)
class LoopRecord:
    """A loop in all its contexts: the least and the greatest of their bounds."""

    function: str
    path: str
    line: int
    text: str
    low: int | None
    high: int | None
    method: str


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """One entry; ``cycles`` is None where ``formula`` is the bound."""

    cycles: int | None
    formula: str
    causes: Mapping[str, int]
    lines: tuple[LineRecord, ...]
    loops: tuple[LoopRecord, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """All of it. ``kernel`` and ``facts`` are hashes; ``entries`` may have ``LATENCY`` among them.

    ``assumed`` is without what moves: addresses, offsets, numbers of lines.
    """

    kernel: str
    facts: Mapping[str, str]
    platform: str
    version: str
    entries: Mapping[str, EntryRecord]
    assumed: tuple[str, ...]
    unbounded: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Of all entries, bounded or not."""
        return frozenset((*self.entries, *self.unbounded))

    @property
    def has_lines(self) -> bool:
        """Whether it knows the lines of any path."""
        return any(entry.lines for entry in self.entries.values())

    def without_lines(self) -> Record:
        """The same with bounds and causes alone."""
        bare = {n: replace(e, lines=(), loops=()) for n, e in self.entries.items()}
        return replace(self, entries=bare)

    def only(self, names: frozenset[str]) -> Record:
        """The entries with these names, bounded or not."""
        return replace(
            self,
            entries={n: e for n, e in self.entries.items() if n in names},
            unbounded={n: why for n, why in self.unbounded.items() if n in names},
        )


def recorded(result: Result, sources: Path) -> Record:
    """The record of ``result``, whose compiler ran in the folder ``sources``."""
    reader = _Sources(result, sources)
    entries = {name: _entry(reader, entry) for name, entry in result.entries.items()}
    if result.latency is not None:
        entries[LATENCY] = EntryRecord(result.latency.cycles, "", {}, (), ())
    return Record(
        result.image.sha256,
        {Path(name).name: _hash(Path(name)) for name in result.facts_files},
        result.platform.name,
        version("quoll"),
        entries,
        tuple(sorted({ADDRESS.sub("", text) for text in result.assumptions})),
        {name: str(error) for name, error in result.unbounded.items()},
    )


class _Sources:
    """Source lines by address: where they are, and their text."""

    def __init__(self, result: Result, folder: Path) -> None:
        self.result, self._folder = result, folder
        self._files: dict[str, list[str]] = {}

    def line(self, address: int) -> tuple[str, int, str]:
        """Path, number and text; an address without a line is its own path."""
        found = self.result.image.line(address)
        if found is None:
            return "?", 0, ""
        if found.path not in self._files:
            self._files[found.path] = read_source(self._folder / found.path)
        text = self._files[found.path]
        path = _from_here(self._folder / found.path) if text else found.path
        known = 0 < found.line <= len(text)
        return path, found.line, text[found.line - 1].strip() if known else ""

    def function(self, entry: EntryResult, context: int) -> str:
        """The function of a context."""
        return self.result.function(entry.graph.contexts[context].function)


def _entry(reader: _Sources, entry: EntryResult) -> EntryRecord:
    causes = {cause.name.lower(): n for cause, n in entry.cycles_by_cause().items() if n}
    formula = "" if entry.parametric is None else str(entry.parametric)
    return EntryRecord(
        entry.bound_cycles, formula, causes, _lines(reader, entry), _loops(reader, entry)
    )


def _lines(reader: _Sources, entry: EntryResult) -> tuple[LineRecord, ...]:
    """Cycles by function and line; those of a block are shared among its instructions."""
    if not entry.solution.nodes:
        return ()
    cycles: dict[tuple[str, str, int, str], int] = {}
    runs: dict[tuple[str, str, int, str], dict[int, int]] = {}
    for _, part in outline(entry.graph, entry.costs, entry.solution).walk():
        function = reader.function(entry, part.stretch.context)
        for node, executions, spent in part.blocks:
            insns = entry.graph.nodes[node].block.insns
            n, here = len(insns), set()
            for position, insn in enumerate(insns):
                key = function, *reader.line(insn.addr)
                share = spent * (position + 1) // n - spent * position // n
                cycles[key] = cycles.get(key, 0) + share
                here.add(key)
            for key in here:
                of_block = runs.setdefault(key, {})
                of_block[insns[0].addr] = of_block.get(insns[0].addr, 0) + executions
    return tuple(
        LineRecord(*key, max(runs[key].values()), spent) for key, spent in sorted(cycles.items())
    )


def _loops(reader: _Sources, entry: EntryResult) -> tuple[LoopRecord, ...]:
    found: dict[tuple[str, str, int, str], list[tuple[int | None, str]]] = {}
    for loop, bound in zip(entry.graph.loops, entry.bounds, strict=True):
        header = entry.graph.nodes[loop.header]
        key = reader.function(entry, header.context), *reader.line(header.block.addr)
        found.setdefault(key, []).append((entry.rounds(bound), bound.method))
    records = []
    for key, bounds in sorted(found.items()):
        numbers = [n for n, _ in bounds if n is not None]
        low, high = (min(numbers), max(numbers)) if numbers else (None, None)
        records.append(LoopRecord(*key, low, high, ", ".join(sorted({m for _, m in bounds}))))
    return tuple(records)


def _from_here(path: Path) -> str:
    """``path`` relative to the current folder, where it is below that."""
    there = path.absolute()
    inside = there.is_relative_to(Path.cwd())
    return os.path.normpath(there.relative_to(Path.cwd()) if inside else path)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def to_json(record: Record) -> str:
    """The document; the same record gives the same bytes."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(record)}, indent=1) + "\n"


def read(path: Path) -> Record:
    """The record in a file, or of a result of ``wcet analyse --json``. Raises InputError."""
    try:
        document = json.loads(read_input(path, LARGEST).decode("utf-8"))
        if document.pop("schema_version") != SCHEMA_VERSION:
            raise ValueError("it is of another version of this program")
        if isinstance(document.get("kernel"), dict):
            return _of_report(document)
        entries = {name: _entry_of(value) for name, value in document.pop("entries").items()}
        assumed = tuple(document.pop("assumed"))
        return Record(entries=entries, assumed=assumed, **document)
    except Unreadable as error:
        raise InputError(
            f"the baseline {path} {error}", hint="write one: wcet baseline KERNEL.ELF"
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a baseline: {error}", hint="write one: wcet baseline KERNEL.ELF"
        ) from error


def _of_report(document: dict[str, Any]) -> Record:
    """What a report says of bounds; it has no lines, and its facts are not hashed."""
    entries = {}
    for name, value in document["entries"].items():
        formula = "" if value["parametric"] is None else str(value["parametric"]["text"])
        entries[name] = _entry_of(
            {
                "cycles": value["cycles"],
                "formula": formula,
                "causes": {cause: n for cause, n in value["causes"].items() if n},
                "lines": [],
                "loops": [],
            }
        )
    latency = document["interrupt_latency"]
    if latency is not None:
        entries[LATENCY] = EntryRecord(latency["cycles"], "", {}, (), ())
    return Record(
        document["kernel"]["sha256"],
        {},
        document["platform"]["name"],
        "",
        entries,
        tuple(sorted({ADDRESS.sub("", text) for text in document["assumptions"]})),
        {name: error["message"] for name, error in document["unbounded"].items()},
    )


def _entry_of(value: dict[str, Any]) -> EntryRecord:
    lines = tuple(LineRecord(**line) for line in value.pop("lines"))
    loops = tuple(LoopRecord(**loop) for loop in value.pop("loops"))
    entry = EntryRecord(lines=lines, loops=loops, **value)
    if not (entry.cycles is None or type(entry.cycles) is int):
        raise ValueError("a bound is no number")
    return entry
