"""The baseline record of a result, for later comparisons: a small JSON document.

For each worst path it has the cycles of every source line by function, and the bounds of its loops.
A line is identified by its function and its text, so that moved lines and renamed files stay the
same. Addresses are left out, because they change with every build.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ilp.paths.outline import outline, spent_at
from pipeline.costs import CostCause
from quoll.errors import InputError
from quoll.facts.fact import Fact
from quoll.input_files import Unreadable, read_input
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.reports.json_document import SCHEMA_VERSION as REPORT_VERSION
from wcet.reports.path_text import read_source

__all__ = [
    "LARGEST",
    "LATENCY",
    "BaselineRecord",
    "EntryRecord",
    "LineRecord",
    "LoopRecord",
    "StatedFact",
    "read",
    "recorded",
    "to_json",
]

SCHEMA_VERSION = 1
REPORTS = (1, REPORT_VERSION)  # they differ in the path only
LARGEST = 64 << 20  # bytes of a record
LATENCY = "interrupt latency"  # as the name of an entry
MISSES = (CostCause.FETCH_MISS, CostCause.LOAD_MISS, CostCause.STORE, CostCause.TLB)
LINE = re.compile(r"[\w./+-]+\.[A-Za-z]+:[0-9]{1,18}")  # a place in a fact
ADDRESS = re.compile(r"0x[0-9a-f]{8}|\+0x[0-9a-f]+|(?<=:)[0-9]+\b")


@dataclass(frozen=True, slots=True)
class LineRecord:
    """A source line on a worst path; ``text`` is "" if its file is missing."""

    function: str
    path: str
    line: int
    text: str
    runs: int  # executions of its most executed block
    cycles: int
    misses: int  # of the cycles, those of accesses that may miss


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
class StatedFact:
    """A fact. ``about``: its text with the text of source lines instead of their numbers.

    "" if unknown, as in a report.
    """

    source: str
    text: str
    about: str


@dataclass(frozen=True, slots=True)
class BaselineRecord:
    """The whole record. ``kernel`` and ``facts``: hashes; ``entries`` may contain ``LATENCY``.

    ``assumed``: assumptions without addresses, offsets and line numbers, which change. ``asked``:
    the configuration besides the facts ``stated``. ``proved``: by entry, the number of exclusions
    from refinement that its bound uses, if it uses any. ``seen``: by entry, the cycles of the
    longest execution that is known.
    """

    kernel: str
    facts: Mapping[str, str]
    platform: str
    version: str
    entries: Mapping[str, EntryRecord]
    assumed: tuple[str, ...]
    unbounded: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    stated: tuple[StatedFact, ...] = ()
    proved: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The names of all entries, bounded or not."""
        return frozenset((*self.entries, *self.unbounded))

    @property
    def has_lines(self) -> bool:
        """Whether it has the lines of any path."""
        return any(entry.lines for entry in self.entries.values())

    def without_lines(self) -> BaselineRecord:
        """The record with bounds and causes only."""
        bare = {n: replace(e, lines=(), loops=()) for n, e in self.entries.items()}
        return replace(self, entries=bare)

    def restricted_to(self, names: frozenset[str]) -> BaselineRecord:
        """The record of the entries with these names, bounded or not."""
        return replace(
            self,
            entries={n: e for n, e in self.entries.items() if n in names},
            unbounded={n: why for n, why in self.unbounded.items() if n in names},
        )


def recorded(result: AnalysisResult, sources: Path) -> BaselineRecord:
    """The record of ``result``, whose compiler ran in the folder ``sources``."""
    reader = _Sources(result, sources)
    entries = {name: _entry(reader, entry) for name, entry in result.entries.items()}
    if result.latency is not None:
        entries[LATENCY] = EntryRecord(result.latency.cycles, "", {}, (), ())
    return BaselineRecord(
        result.image.sha256,
        {Path(name).name: _hash(Path(name)) for name in result.facts_files},
        result.platform.name,
        version("quoll"),
        entries,
        tuple(sorted({ADDRESS.sub("", str(a)) for a in result.assumptions})),
        {name: str(error) for name, error in result.unbounded.items()},
        result.configuration,
        tuple(
            StatedFact(_from_here(Path(fact.source)), fact.text, reader.about(fact.fact))
            for fact in result.facts
        ),
        {name: len(entry.proved) for name, entry in result.entries.items() if entry.proved},
        {name: entry.seen.cycles for name, entry in result.entries.items() if entry.seen},
    )


class _Sources:
    """Source lines by address, with their places and texts."""

    def __init__(self, result: AnalysisResult, folder: Path) -> None:
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

    def about(self, fact: Fact) -> str:
        """A fact with the text of lines instead of their numbers, if sources exist."""

        def text_of(found: re.Match[str]) -> str:
            place = self.result.located.places.get((found[0], fact.source.statement))
            starts = place.addresses if place else ()
            return self._text_of(found[0], starts[0]) if starts else found[0]

        return LINE.sub(text_of, str(fact))

    def _text_of(self, place: str, address: int) -> str:
        """The line ``place`` by its function, its text, and the number of equal lines before it."""
        path, number, text = self.line(address)
        symbol = self.result.image.symbol_at(address)
        if not text or symbol is None:
            return place
        found = self.result.image.line(address)
        lines = [] if found is None else self._files[found.path][: number - 1]
        before = sum(line.strip() == text for line in lines)
        return f"{symbol[0].name}: {Path(path).name}: {text} ({before})"

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
    """Cycles by function and line; a block's cycles are distributed over its instructions."""
    if not entry.solution.nodes:
        return ()
    cycles: dict[tuple[str, str, int, str], int] = {}
    misses: dict[tuple[str, str, int, str], int] = {}
    runs: dict[tuple[str, str, int, str], dict[int, int]] = {}
    costs = entry.costs_on_path
    for _, section in outline(entry.graph, costs, entry.solution).walk():
        function = reader.function(entry, section.stretch.context)
        for node, executions, spent in section.blocks:
            insns = entry.graph.nodes[node].block.insns
            n, here = len(insns), set()
            causes = spent_at(entry.graph, costs, entry.solution, node)
            missed = sum(causes[cause] for cause in MISSES)
            for position, insn in enumerate(insns):
                key = function, *reader.line(insn.addr)
                for sums, whole in ((cycles, spent), (misses, missed)):
                    share = whole * (position + 1) // n - whole * position // n
                    sums[key] = sums.get(key, 0) + share
                here.add(key)
            for key in here:
                of_block = runs.setdefault(key, {})
                of_block[insns[0].addr] = of_block.get(insns[0].addr, 0) + executions
    return tuple(
        LineRecord(*key, max(runs[key].values()), spent, misses[key])
        for key, spent in sorted(cycles.items())
    )


def _loops(reader: _Sources, entry: EntryResult) -> tuple[LoopRecord, ...]:
    found: dict[tuple[str, str, int, str], list[tuple[int | None, str]]] = {}
    for loop, bound in zip(entry.graph.loops, entry.bounds, strict=True):
        header = entry.graph.nodes[loop.header]
        key = reader.function(entry, header.context), *reader.line(header.block.addr)
        found.setdefault(key, []).append((bound.iterations(entry.graph), bound.method))
    records = []
    for key, bounds in sorted(found.items()):
        numbers = [n for n, _ in bounds if n is not None]
        low, high = (min(numbers), max(numbers)) if numbers else (None, None)
        records.append(LoopRecord(*key, low, high, ", ".join(sorted({m for _, m in bounds}))))
    return tuple(records)


def _from_here(path: Path) -> str:
    """``path`` relative to the current folder, if it is below."""
    there = path.absolute()
    inside = there.is_relative_to(Path.cwd())
    return os.path.normpath(there.relative_to(Path.cwd()) if inside else path)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def to_json(record: BaselineRecord) -> str:
    """The document; equal records give equal bytes."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(record)}, indent=1) + "\n"


def read(path: Path) -> BaselineRecord:
    """The record in a file, or of a result file of ``wcet analyse --json``. Raises InputError."""
    try:
        document = json.loads(read_input(path, LARGEST).decode("utf-8"))
        if not isinstance(document, dict) or "schema_version" not in document:
            raise ValueError("it has no schema_version")
        of_report = isinstance(document.get("kernel"), dict)
        if document.pop("schema_version") not in (REPORTS if of_report else (SCHEMA_VERSION,)):
            raise ValueError("it is of another version of this program")
        if of_report:
            return _of_report(document)
        return _made(BaselineRecord, document, "")
    except Unreadable as error:
        raise InputError(
            f"the baseline {path} {error}", hint="write one: wcet baseline KERNEL.ELF"
        ) from error
    except KeyError as error:
        raise InputError(
            f"{path} is not a baseline: {error} is missing",
            hint="write one: wcet baseline KERNEL.ELF",
        ) from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a baseline: {error}", hint="write one: wcet baseline KERNEL.ELF"
        ) from error


T = TypeVar("T", BaselineRecord, EntryRecord, LineRecord, LoopRecord)


def _made(kind: type[T], value: object, where: str) -> T:
    """``value`` of a JSON document as a record. Raises ValueError naming the wrong place."""
    given = _object(value, where or "the document")
    hints = get_type_hints(kind)
    for name in given:
        if name not in hints:
            raise ValueError(f"{where}{name} is not known")
    found: dict[str, Any] = {}
    for one in fields(kind):
        if one.name in given:
            found[one.name] = _typed(hints[one.name], given[one.name], f"{where}{one.name}")
        elif one.default is MISSING and one.default_factory is MISSING:
            raise ValueError(f"{where}{one.name} is missing")
    return kind(**found)


def _typed(hint: Any, value: object, where: str) -> object:
    """``value`` converted to the type of a field."""
    of = get_args(hint)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is no list")
        return tuple(_typed(of[0], one, f"{where}[{at}]") for at, one in enumerate(value))
    if get_origin(hint) is Mapping:
        given = _object(value, where)
        return {name: _typed(of[1], one, f"{where}.{name}") for name, one in given.items()}
    if is_dataclass(hint):
        return _made(cast("type[Any]", hint), value, f"{where}.")
    if isinstance(value, bool) or not isinstance(value, hint):
        raise ValueError(f"{where} is no {'text' if hint is str else 'whole number'}")
    return value


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where.rstrip('.')} is no object")
    return value


def _of_report(document: dict[str, Any]) -> BaselineRecord:
    """The record of a report, without lines; its facts have no texts of lines."""
    entries: dict[str, dict[str, Any]] = {}
    for name, value in document["entries"].items():
        formula = "" if value["parametric"] is None else str(value["parametric"]["text"])
        entries[name] = {
            "cycles": value["cycles"],
            "formula": formula,
            "causes": {cause: n for cause, n in value["causes"].items() if n},
            "lines": [],
            "loops": [],
        }
    latency = document["interrupt_latency"]
    if latency is not None:
        bare = {"formula": "", "causes": {}, "lines": [], "loops": []}
        entries[LATENCY] = {"cycles": latency["cycles"], **bare}
    found = {
        "kernel": document["kernel"]["sha256"],
        "facts": {},
        "platform": document["platform"]["name"],
        "version": document.get("version", ""),
        "asked": document.get("question", {}),
        "stated": [
            {"source": one["source"], "text": one["fact"], "about": ""}
            for one in document.get("fact_labels", ())
        ],
        "proved": {
            name: len(entry["proved_exclusions"])
            for name, entry in document["entries"].items()
            if entry.get("proved_exclusions")
        },
        "seen": {
            name: seen["cycles"]
            for name, entry in document["entries"].items()
            if (seen := entry.get("seen"))
        },
        "entries": entries,
        "assumed": sorted({ADDRESS.sub("", text) for text in document["assumptions"]}),
        "unbounded": {name: error["message"] for name, error in document["unbounded"].items()},
    }
    return _made(BaselineRecord, found, "")
