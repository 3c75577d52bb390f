"""Platforms: core, caches, latencies, clock, entries and exits of a board, from a TOML file.

    platform, reason = for_image(cpu="6J", architecture="v6")
    platform = load("kzm-paper").with_l2(True)

A board is one file in ``wcet/platforms``, or any file named by its path. A file that lacks a
figure, has an unknown key or contradicts itself is an InputError that names the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from cache.geometry import CacheGeometry, CacheHierarchy
from cache.initial import InitialCache, InitialContentsKind
from cache.locked import NOT_LOCKED, LockedLines
from cache.policy import ReplacementPolicy
from pipeline import core as core_module
from pipeline.timing_model import BranchModel, CoreProfile, EntryState, MemoryLatencies, TimingModel
from pipeline.tlb_model import TlbModel
from quoll.arm.branch_prediction import BranchPrediction
from quoll.assumptions import (
    ACKNOWLEDGED_BY_LOAD,
    CONTROLLER_DELAY,
    PENDING,
    RETURN_STACK,
    STAYS_PENDING,
    TABLE_WALKS,
    TLB_RESIDENT,
    WITHDRAWN_BY_STORE,
    WRONG_PATHS,
    WRONG_RETURNS,
    Assumption,
    of_platform,
)
from quoll.errors import InputError
from quoll.facts.regions import MemoryRegions
from quoll.image.cache_words import CacheType, CacheWords, size_word
from quoll.image.image import Image
from quoll.image.memory_map import Cacheability, MemoryMap, MemoryRegion, PhysicalMirror, RegionKind
from quoll.input_files import Unreadable, read_input
from quoll.preemption.predicate import PendingPredicate
from quoll.printable import shortened
from quoll.spelling import did_you_mean
from wcet.platforms.controller import read_controller
from wcet.platforms.platform_keys import schema_errors
from wcet.platforms.processor import Processor
from wcet.platforms.toml_table import TomlTable, read_toml

__all__ = [
    "COPIED",
    "INTERRUPT",
    "EntryPoint",
    "Platform",
    "cores",
    "file_of",
    "files_of",
    "for_image",
    "load",
    "names",
]

INTERRUPT = "interrupt"  # name of the interrupt entry
DIRECTORY = Path(__file__).parent
OWN_CORE = ".csv"  # suffix of a core.name that is a file beside the platform file
LARGEST_CORE = 4 << 20  # bytes of such a file
SMALLEST_PAGE = 4096  # bytes: virtual and physical addresses agree within a page
ERRORS_SHOWN = 40
WORD = 0xFFFFFFFF
MOST_AHEAD = 128  # bytes of a wrong path
COPIED = "copied from "  # prefix of a source that was not looked up for this board


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """Where the paths of an exception start: the first symbol that exists, else ``vector``."""

    vector: int
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Platform:
    """A board as the analyses use it, with the L2 on or off."""

    name: str
    description: str
    path: Path
    cpus: tuple[str, ...]  # Tag_CPU_name of ELFs built for it
    architectures: tuple[str, ...]  # Tag_CPU_arch of ELFs built for it
    clock_hz: int
    entries: Mapping[str, EntryPoint]
    exits: tuple[str, ...]  # a path may end at symbols that begin with one of these
    pending: PendingPredicate  # words that loads give while an interrupt is pending
    hierarchy: CacheHierarchy
    timing: TimingModel
    processor: Processor
    l2: CacheGeometry | None  # the L2, enabled or not
    access_by_l2: tuple[int, int]  # cycles of a memory access with the L2 off, on
    l2_hit: int
    assumptions: tuple[Assumption, ...]
    sources: Mapping[str, str]  # key of each figure -> its source
    locked: tuple[str, ...] = ()  # "FIRST..AFTER": addresses or symbols, locked in L2
    locked_ways: int = 0
    locked_l1: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # the same in L1I and L1D
    held_l1: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # in L1I and L1D at an entry
    tlb: TlbModel | None = None  # figures of the TLBs, charged or not
    cache_words: CacheWords | None = None  # of the registers that identify caches
    controller_delay: int | None = None  # cycles until the controller shows a line; None: not given

    @property
    def l2_enabled(self) -> bool:
        """Whether the L2 is on."""
        return self.hierarchy.l2 is not None

    def pending_assumption(self) -> tuple[Assumption, ...]:
        """The assumptions of a bound whose paths contain tests for interrupts (rule 21)."""
        known, name = self.pending, self.name
        loads = (ACKNOWLEDGED_BY_LOAD.of(platform=name),) if known.loads else ()
        withdrawn = (WITHDRAWN_BY_STORE.of(platform=name),) if known.disables else ()
        return (
            PENDING.of(platform=name, predicate=known.text),
            STAYS_PENDING.of(),
            *loads,
            *withdrawn,
        )

    def delay_assumption(self) -> tuple[Assumption, ...]:
        """The assumption of a latency from the assertion of a line on, if the platform has one."""
        if self.controller_delay is None:
            return ()
        return (CONTROLLER_DELAY.of(platform=self.name, cycles=self.controller_delay),)

    def with_l2(self, on: bool) -> Platform:
        """The same board with the L2 on or off. Raises InputError if it has none."""
        if on and self.l2 is None:
            raise InputError(f"{self.path}: platform {self.name} has no level-2 cache")
        memory = replace(
            self.timing.memory, access=self.access_by_l2[on], l2_hit=self.l2_hit if on else None
        )
        return replace(
            self,
            hierarchy=replace(self.hierarchy, l2=self.l2 if on else None),
            timing=replace(self.timing, memory=memory),
        )

    def with_tlb(self, model: str) -> Platform:
        """The same board, with translations assumed present, or charged page by page.

        Raises InputError if the platform file has no figures to charge.
        """
        charged = self.tlb if model == LAST_PAGE else None
        if model == LAST_PAGE and charged is None:
            raise InputError(
                f"{self.path}: platform {self.name} has no figures for table walks",
                hint="give tlb.refill, tlb.reads and tlb.page",
            )
        if charged is not None and self.hierarchy.prediction is not BranchPrediction.OFF:
            raise InputError(
                f"{self.path}: table walks for fetches on wrong paths are not charged",
                hint="leave out --tlb, or take branch.predictor = off",
            )
        texts = tuple(a for a in self.assumptions if a.kind is not TLB_RESIDENT)
        if charged is not None:
            walks = TABLE_WALKS.of(platform=self.name, refill=charged.refill, reads=charged.reads)
            texts = (*texts, walks)
        elif self.timing.tlb is None:
            texts = self.assumptions
        else:
            raise InputError(
                f"{self.path}: platform {self.name} assumes nothing of its TLBs",
                hint="leave out --tlb",
            )
        return replace(self, timing=replace(self.timing, tlb=charged), assumptions=texts)

    def with_virtual_index(self) -> Platform:
        """The same board, with a data cache indexed by virtual addresses."""
        if self.hierarchy.l1d.index_bytes is None:
            return self
        l1d = replace(self.hierarchy.l1d, index_bytes=None)
        text = "bits of virtual addresses above a page select the set of the data cache, too"
        stated = of_platform(self.name, "data-index", text)
        return replace(
            self,
            hierarchy=replace(self.hierarchy, l1d=l1d),
            assumptions=(*self.assumptions, stated),
        )

    def locking(self, image: Image) -> Platform:
        """The same board with the lines that it locks in its caches, located in ``image``.

        Raises InputError for a symbol that the image lacks, and if the locked ways are too few.
        """
        known = self.hierarchy
        l1i, l1d = self.locked_l1
        locked_i = self._held("l1i", l1i, known.l1i, known.l1i.locked_ways, image)
        locked_d = self._held("l1d", l1d, known.l1d, known.l1d.locked_ways, image)
        held_i, held_d = (
            self._held(level, texts, geometry, geometry.free_ways, image, "held")
            for level, texts, geometry in zip(
                ("l1i", "l1d"), self.held_l1, (known.l1i, known.l1d), strict=True
            )
        )
        known = replace(
            known,
            locked_i=locked_i,
            locked_d=locked_d,
            initial_i=replace(known.initial_i, held=held_i),
            initial_d=replace(known.initial_d, held=held_d),
        )
        if self.l2 is not None:
            lines = self._held("l2", self.locked, self.l2, self.locked_ways, image)
            known = replace(known, locked=lines)
        return replace(self, hierarchy=known)

    def _held(
        self,
        level: str,
        texts: tuple[str, ...],
        geometry: CacheGeometry,
        ways: int,
        image: Image,
        key: str = "locked",
    ) -> LockedLines:
        if not texts:
            return NOT_LOCKED
        ranges = [self._range(f"{level}.{key}", text, image) for text in texts]
        lines, memory = LockedLines.of(ranges, geometry.line_bytes), self.hierarchy.memory
        for line in lines.lines() if key == "held" else ():
            first, last = line * geometry.line_bytes, (line + 1) * geometry.line_bytes - 1
            if memory.cacheability(first, last) is not Cacheability.ALWAYS or not memory.fixed(
                first
            ):
                raise InputError(
                    f"{self.path}: caches.{level}.held: {first:#010x} is not in cached memory of "
                    "fixed translation"
                )
        crowded = lines.crowded(geometry.sets, ways, memory)
        if crowded is not None:
            raise InputError(
                f"{self.path}: caches.{level}.{key}: {ways} ways do not hold all of it: "
                f"the set of {crowded:#010x} needs more",
                hint="raise locked_ways, or lock less" if key == "locked" else "name fewer lines",
            )
        return lines

    def with_regions(self, regions: MemoryRegions) -> Platform:
        """The same board with the facts' memory. Raises FactsError if they contradict it."""
        memory = self.hierarchy.memory.with_facts(regions.regions.values())
        return replace(self, hierarchy=replace(self.hierarchy, memory=memory))

    def _range(self, level: str, text: str, image: Image) -> tuple[int, int]:
        ends: list[int] = []
        for end in text.split(".."):
            symbol = None if end[:1].isdigit() else image.symbol(end)
            try:
                ends.append(int(end, 0) if symbol is None else symbol.addr)
            except ValueError as fault:
                raise InputError(
                    f"{self.path}: caches.{level}: {end!r} is neither an address nor a "
                    "symbol of the kernel"
                ) from fault
        if len(ends) != 2 or ends[0] >= ends[1]:
            raise InputError(f"{self.path}: caches.{level}: {text!r} is not FIRST..AFTER")
        return ends[0], ends[1]


def names() -> tuple[str, ...]:
    """The names of the shipped platforms, sorted."""
    return tuple(sorted(p.stem for p in DIRECTORY.glob("*.toml")))


def cores() -> tuple[str, ...]:
    """The names of the shipped cores, sorted."""
    return tuple(sorted(p.stem for p in core_module.DIRECTORY.glob(f"*{OWN_CORE}")))


def load(name: str) -> Platform:
    """The platform called ``name``, or described by the file at path ``name`` (``*.toml``)."""
    return _platform(file_of(name))


def file_of(name: str) -> Path:
    """The file of the platform called ``name``, or at path ``name``. Raises InputError for none."""
    if name.endswith(".toml"):
        return Path(name)
    if name not in names():
        near = did_you_mean(name, names())
        raise InputError(
            f"no platform {shortened(name)!r}",
            hint=f"{near and f'{near} '}known: {', '.join(names())}; or give the path of a .toml "
            "file",
        )
    return DIRECTORY / f"{name}.toml"


def files_of(platform: Path) -> Iterator[Path]:
    """The files that a board is read from: its own file, and the files of an own core beside it."""
    yield platform
    with suppress(InputError):
        core = read_toml(platform).get("core")
        name = core.get("name") if isinstance(core, dict) else None
        if isinstance(name, str) and name.endswith(OWN_CORE):
            rows = platform.parent / name
            yield from filter(Path.is_file, (rows, rows.with_suffix(".toml")))


def for_image(cpu: str | None, architecture: str | None) -> tuple[Platform, str]:
    """The platform for an ELF's build attributes, and the attribute that chose it.

    Raises InputError when none or several fit.
    """
    platforms = [load(name) for name in names()]
    for value, tag, field in (
        (cpu, "Tag_CPU_name", "cpus"),
        (architecture, "Tag_CPU_arch", "architectures"),
    ):
        if value is None:
            continue
        wanted = value.casefold()
        fitting = [p for p in platforms if wanted in map(str.casefold, getattr(p, field))]
        if len(fitting) == 1:
            return fitting[0], f"{tag} is {value}"
        if fitting:
            raise InputError(
                f"{tag} {value} fits several platforms: {', '.join(p.name for p in fitting)}",
                hint="choose one with --platform",
            )
    raise InputError(
        f"no platform is known for CPU {cpu!r}, architecture {architecture!r}",
        hint=f"choose one with --platform: {', '.join(names())}",
    )


def _platform(path: Path) -> Platform:
    content = read_toml(path)
    wrong = schema_errors(content)
    if wrong:
        more = len(wrong) - ERRORS_SHOWN
        raise InputError(
            f"{path}: {'; '.join(wrong[:ERRORS_SHOWN])}{f'; and {more} more' if more > 0 else ''}",
            hint="'wcet help platform-keys' explains every key",
        )
    top = TomlTable(content, str(path))
    name = top.text("name")
    caches, latency, core = top.table("caches"), top.table("latency"), top.table("core")
    access = (latency.figure("memory_l2_off", 1), latency.figure("memory_l2_on", 1))
    l2_hit = latency.figure("l2_hit", 1)
    line_rest = latency.figure("line_rest")
    replay, restart = (
        latency.figure(key) if latency.present(key) else 0 for key in ("replay", "fetch_restart")
    )
    latency.close()
    tables = caches.table("l1i"), caches.table("l1d")
    (initial_i, held_i), (initial_d, held_d) = map(_initial, tables)
    writes, index = _writes(tables[1]), _index_bytes(tables[1])
    (l1i, locked_i), (l1d, locked_d) = map(_l1, tables)
    l1d = replace(l1d, write_allocate=writes[0], write_through=writes[1], index_bytes=index)
    l2_enabled, l2, locked, locked_ways = _l2(caches)
    words = _cache_words(caches, (l1i, l1d, l2))
    policy = ReplacementPolicy(caches.text("model", tuple(p.value for p in ReplacementPolicy)))
    aligned = caches.flag("aligned")
    caches.close()
    dirty = top.table("dirty_victims")
    memory = MemoryLatencies(
        access[0], None, line_rest, dirty.flag("l1") and not writes[1], dirty.flag("l2"), replay,
        restart, l1d.line_bytes // 4, *writes,
    )  # fmt: skip
    dirty.close()
    core_name, own_rows = _core(core, path)
    profile = CoreProfile(core.text("profile", tuple(p.value for p in CoreProfile)))
    fetch_ahead = core.figure("fetch_ahead")
    core.close()
    outstanding, branches = _entry_state(top), _branches(top.table("branch"))
    tlb_name, tlb = read_tlb(top.table("tlb"))
    clock_hz = top.figure("clock_hz", 1)
    predicate, delay = read_controller(top)
    predicts = branches.prediction is not BranchPrediction.OFF
    figures = {
        "clock_mhz": f"{clock_hz / 10**6:.6f}".rstrip("0").rstrip("."),
        "fetch_ahead": fetch_ahead,
        **asdict(outstanding),
    }
    platform = Platform(
        name=name,
        description=top.text("description"),
        path=path,
        cpus=top.texts("cpus"),
        architectures=top.texts("architectures"),
        clock_hz=clock_hz,
        entries=_entries(top.table("entries")),
        exits=top.texts("exits"),
        pending=predicate,
        hierarchy=CacheHierarchy(
            l1i,
            l1d,
            None,
            _memory_map(top),
            fetch_ahead,
            aligned,
            policy,
            initial_i=initial_i,
            initial_d=initial_d,
            prediction=branches.prediction,
        ),
        timing=TimingModel(
            core_name,
            profile,
            memory,
            branches,
            outstanding,
            own_rows=own_rows,
        ),
        processor=Processor.load(
            (core_module.DIRECTORY if own_rows is None else path.parent) / f"{core_name}.toml"
        ),
        l2=l2,
        access_by_l2=access,
        l2_hit=l2_hit,
        assumptions=(
            *_predictor_assumptions(name, branches.prediction),
            *_assumptions(top, name, figures, tlb_name),
        ),
        sources=top.sources,
        locked=locked,
        locked_ways=locked_ways,
        locked_l1=(locked_i, locked_d),
        held_l1=(held_i, held_d),
        tlb=tlb,
        cache_words=words,
        controller_delay=delay,
    )
    if predicts and fetch_ahead > MOST_AHEAD:
        raise top.error("core", f"fetch_ahead is at most {MOST_AHEAD} if branches are predicted")
    if predicts and core_module.issue_width(platform.timing) > 1:
        raise top.error("branch", "no predictor of a core that issues two instructions is known")
    top.close()
    return platform.with_l2(l2_enabled).with_tlb(tlb_name)


def _core(table: TomlTable, platform: Path) -> tuple[str, str | None]:
    """The name of the core, and its rows as text if they are in a file beside the platform's."""
    name = table.text("name")
    if not name.endswith(OWN_CORE):
        if name not in cores():
            known = ", ".join(cores())
            raise table.error("name", f"no core {shortened(name)!r}: know {known}, or FILE.csv")
        return name, None
    if Path(name).name != name:
        raise table.error("name", "a file beside the platform file, without a folder")
    file = platform.parent / name
    try:
        rows = read_input(file, LARGEST_CORE).decode("utf-8-sig")
    except Unreadable as error:
        raise InputError(f"core description {file} {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"core description {file}: not UTF-8: {error.reason}") from error
    return name.removesuffix(OWN_CORE), rows


def _geometry(table: TomlTable) -> CacheGeometry:
    geometry = CacheGeometry(
        table.number("size", 1), table.number("ways", 1), table.number("line", 4)
    )
    for key, value in (("size", geometry.size), ("line", geometry.line_bytes)):
        if value & (value - 1):
            raise table.error(key, f"must be a power of two, not {value}")
    if geometry.size % (geometry.ways * geometry.line_bytes):
        raise table.error("size", "must be a multiple of ways × line")
    table.sources[table.name] = table.text("source")
    table.close()
    return geometry


def _cache_words(
    caches: TomlTable, sizes: tuple[CacheGeometry, CacheGeometry, CacheGeometry | None]
) -> CacheWords | None:
    """The words of the registers that identify caches; None if the file does not give CLIDR.

    Raises InputError if CLIDR has no separate caches at level 1, or is no word.
    """
    if not caches.present("clidr"):
        return None
    words = CacheWords(caches.figure("clidr"), ())
    if words.levels > WORD or words.type_of(1) is not CacheType.SEPARATE:
        raise caches.error("clidr", "a word with separate caches at level 1, as l1i and l1d are")
    l1i, l1d, l2 = sizes
    known = {0: l1d, 1: l1i}
    if l2 is not None and words.type_of(2) is CacheType.UNIFIED:
        known[2] = l2
    read = ((at, size_word(c.sets, c.ways, c.line_bytes)) for at, c in known.items())
    return replace(words, sizes=tuple((at, word) for at, word in read if word is not None))


def _locked(table: TomlTable) -> tuple[tuple[str, ...], int]:
    """The locked lines of a cache, and the number of their ways."""
    if not table.present("locked"):
        return (), 0
    return table.texts("locked"), table.number("locked_ways", 1)


def _l1(table: TomlTable) -> tuple[CacheGeometry, tuple[str, ...]]:
    """The sizes of a first-level cache, and its locked lines, which never fill all ways."""
    locked, ways = _locked(table)
    geometry = _geometry(table)
    if ways >= geometry.ways:
        raise table.error("locked_ways", f"one of the {geometry.ways} ways stays free")
    return replace(geometry, locked_ways=ways), locked


def _index_bytes(table: TomlTable) -> int | None:
    """The bytes within which the index of the data cache is known: a page; None: all.

    The instruction caches of both cores are indexed by virtual addresses, like all lines here.
    """
    virtual = table.present("index") and table.text("index", ("virtual",)) == "virtual"
    return None if virtual else SMALLEST_PAGE


def _writes(table: TomlTable) -> tuple[bool, bool]:
    """Whether stores that miss fill their line, and whether every store goes past the cache."""
    allocate, through = (
        table.present(key) and table.flag(key) for key in ("write_allocate", "write_through")
    )
    return allocate, through


def _initial(table: TomlTable) -> tuple[InitialCache, tuple[str, ...]]:
    """The contents of a first-level cache at an entry, if known."""
    contents = InitialContentsKind.UNKNOWN
    if table.present("initial"):
        contents = InitialContentsKind(
            table.text("initial", tuple(c.value for c in InitialContentsKind))
        )
    return InitialCache(contents), table.texts("held") if table.present("held") else ()


def _l2(caches: TomlTable) -> tuple[bool, CacheGeometry | None, tuple[str, ...], int]:
    """Whether the L2 is on, its sizes, its locked lines, and the number of their ways."""
    if not caches.present("l2"):
        return False, None, (), 0
    table = caches.table("l2")
    locked, ways = _locked(table)
    enabled, geometry = table.flag("enabled"), _geometry(table)
    if ways > geometry.ways:
        raise table.error("locked_ways", f"the cache has only {geometry.ways}")
    return enabled, geometry, locked, ways


def _entries(table: TomlTable) -> dict[str, EntryPoint]:
    entries: dict[str, EntryPoint] = {}
    for name in table.remaining():
        entry = table.table(name)
        entries[name] = EntryPoint(entry.number("vector", 0, 0xFFFFFFFF), entry.texts("symbols"))
        entry.close()
    return entries


def _memory_map(top: TomlTable) -> MemoryMap:
    regions: list[MemoryRegion] = []
    for table in top.tables("memory"):
        low, high = table.address_range("virtual")
        physical = table.number("physical", 0, 0xFFFFFFFF) if table.present("physical") else None
        kind = RegionKind(table.text("kind", tuple(k.value for k in RegionKind)))
        regions.append(
            MemoryRegion(table.text("name"), low, high, kind, physical, table.flag("fixed"))
        )
        table.close()
    mirrors: list[PhysicalMirror] = []
    for table in top.tables("mirror") if top.present("mirror") else ():
        low, high = table.address_range("physical")
        mirrors.append(PhysicalMirror(low, high, table.number("of", 0, 0xFFFFFFFF)))
        table.close()
    regions.sort(key=lambda r: r.low)
    for a, b in pairwise(regions):
        if b.low <= a.high:
            raise top.error("memory", f"regions {a.name!r} and {b.name!r} overlap")
    return MemoryMap(tuple(regions), tuple(mirrors))


def _predictor_assumptions(name: str, prediction: BranchPrediction) -> list[Assumption]:
    """The limits of wrong paths, and of the return stack if calls decide its predictions."""
    if prediction is BranchPrediction.OFF:
        return []
    kinds = [WRONG_RETURNS if prediction.of_returns else WRONG_PATHS]
    kinds += [RETURN_STACK] if prediction is BranchPrediction.RETURNS else []
    return [kind.of(platform=name) for kind in kinds]


def _branches(table: TomlTable) -> BranchModel:
    """The time of branches. Raises InputError if a predictor's are to be timed in another way."""
    predictor = table.text("predictor", tuple(p.value for p in BranchPrediction))
    model = table.text("model", ("constant", "core-rows", "flag-distance"))
    constant = table.figure("cycles", 1) if model == "constant" else None
    prediction = BranchPrediction(predictor)
    if prediction is not BranchPrediction.OFF and model != "flag-distance":
        raise table.error("predictor", f"{predictor} needs branch.model = flag-distance")
    table.close()
    return BranchModel(constant, prediction)


def _entry_state(top: TomlTable) -> EntryState:
    table = top.table("entry_state")
    state = EntryState(
        table.figure("load_misses"), table.figure("store_words"), table.figure("fetch_misses")
    )
    table.close()
    return state


def _assumptions(
    top: TomlTable, name: str, figures: Mapping[str, object], tlb: str
) -> tuple[Assumption, ...]:
    table = top.table("assumptions")
    if tlb == RESIDENT and not table.present("tlb"):
        raise table.error("tlb", "missing: tlb.model is assumed-resident")
    found: list[Assumption] = []
    for key in table.remaining():
        text = table.text(key)
        unknown = re.sub(rf"{{({'|'.join(figures)})}}", "", text)
        if "{" in unknown or "}" in unknown:
            raise table.error(key, f"unknown figure in {text!r}: know {', '.join(figures)}")
        found.append(of_platform(name, key, text.format_map(figures)))
    copied = [key for key, source in top.sources.items() if source.startswith(COPIED)]
    if copied:
        text = f"figures of another board hold for this one: {', '.join(copied)}"
        found.append(of_platform(name, "copied", text))
    return tuple(found)


RESIDENT = "assumed-resident"
LAST_PAGE = "last-page"


def read_tlb(table: TomlTable) -> tuple[str, TlbModel | None]:
    """The model by name, and the figures of ``last-page``; None where there are none.

    Raises InputError if the model needs figures that are not there, or they are incomplete.
    """
    name = table.text("model", (RESIDENT, LAST_PAGE))
    model = None
    if name == LAST_PAGE or table.present("reads"):
        ranges = []
        for entry in table.tables("large") if table.present("large") else []:
            low, high = entry.address_range("virtual")
            ranges.append((low, high, entry.number("bytes", 1)))
            entry.close()
        locked = []
        for entry in table.tables("locked") if table.present("locked") else []:
            locked.append(entry.address_range("virtual"))
            entry.close()
        refill, reads = table.figure("refill"), table.figure("reads", 1)
        page = table.figure("page", 1)
        model = TlbModel(refill, reads, page, tuple(ranges), tuple(locked))
    table.close()
    return name, model
