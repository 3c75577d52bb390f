"""The keys of a platform file: meaning, unit, and source in a manual.

The table ``KEYS`` is the source of the check of a file (``schema_errors``), the comments of ``wcet
platform new``, the columns of ``wcet platform show`` and docs/platform-keys.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from cache.initial import InitialContentsKind
from cache.policy import ReplacementPolicy
from pipeline.timing_model import CoreProfile
from quoll.arm.branch_prediction import BranchPrediction
from quoll.image.memory_map import RegionKind
from quoll.printable import shortened
from quoll.spelling import did_you_mean

__all__ = ["ANY", "EACH", "KEYS", "Form", "PlatformKey", "key_of", "schema_errors"]

ANY = "*"  # a name that the file chooses
EACH = "[]"  # behind the name of a list of tables
FIGURE = ("value", "source")


class Form(Enum):
    """The type of a value."""

    TABLE = "table"
    TABLES = "list of tables"
    TEXT = "text"
    TEXTS = "list of texts"
    NUMBER = "integer"
    ADDRESS = "address"
    ADDRESSES = "list of addresses"
    WORD = "word of 32 bits"
    NUMBERS = "list of integers"
    RANGE = "[first, last]"
    FLAG = "true or false"
    FIGURE = "figure"  # { value = N, source = "..." }


@dataclass(frozen=True, slots=True)
class PlatformKey:
    """One key. ``path`` has ``*`` for a chosen name, ``[]`` behind lists of tables.

    ``look``: the manual's place of its value. ``without``: the meaning of a missing key; None for a
    required key. ``example``: TOML, for optional keys.
    """

    path: str
    form: Form
    meaning: str
    look: str = ""
    unit: str = ""
    words: tuple[str, ...] = ()
    without: str | None = None
    example: str = ""

    @property
    def parent(self) -> str:
        """The path of its table; "" at the top."""
        return self.path.rpartition(".")[0]

    @property
    def last(self) -> str:
        """Its name in its table."""
        return self.path.rpartition(".")[2].removesuffix(EACH)


def _values(kind: type[Enum]) -> tuple[str, ...]:
    return tuple(str(member.value) for member in kind)


def _of_cache(cache: str) -> tuple[PlatformKey, ...]:
    """The keys of one cache: sizes and locked lines."""
    return (
        PlatformKey(
            f"{cache}.size", Form.NUMBER, "its size: a power of two", "the SoC's datasheet; a "
            "core's cache size identification register", "bytes", example="131_072",
        ),
        PlatformKey(
            f"{cache}.ways", Form.NUMBER, "its associativity", "TRM, caches", "ways", example="8"
        ),
        PlatformKey(
            f"{cache}.line", Form.NUMBER, "size of a line", "TRM, caches", "bytes", example="32"
        ),
        PlatformKey(
            f"{cache}.source", Form.TEXT, "where these sizes come from", example='"..."'
        ),
        PlatformKey(
            f"{cache}.locked", Form.TEXTS, 'lines that stay in it: "FIRST..AFTER", addresses or '
            "symbols", "the code that locks them", without="nothing is locked",
            example='["vectors..vectors_end"]',
        ),
        PlatformKey(
            f"{cache}.locked_ways", Form.NUMBER, "ways that hold them; needed with locked",
            "the code that locks them", "ways", without="none", example="1",
        ),
    )  # fmt: skip


def _of_first_level(cache: str) -> tuple[PlatformKey, ...]:
    """The keys of a first-level cache: its initial contents at an entry."""
    return (
        *_of_cache(cache),
        PlatformKey(
            f"{cache}.initial", Form.TEXT, "its contents at an entry",
            "the code before the entry", words=_values(InitialContentsKind), without="unknown",
            example='"unknown"',
        ),
        PlatformKey(
            f"{cache}.held", Form.TEXTS, "lines that it holds at every entry, not locked",
            "the code before the entry", without="none is known",
            example='["vector_svc..vector_svc_end"]',
        ),
    )  # fmt: skip


KEYS: tuple[PlatformKey, ...] = (
    PlatformKey("name", Form.TEXT, "name of the board, in every report and assumption"),
    PlatformKey("description", Form.TEXT, "one line: board, chip, core"),
    PlatformKey(
        "cpus", Form.TEXTS, "Tag_CPU_name of binaries for which this platform is chosen; only "
        "platforms of the project are, so [] for a file of your own", "readelf -A kernel.elf",
    ),
    PlatformKey(
        "architectures", Form.TEXTS, "the same for Tag_CPU_arch", "readelf -A kernel.elf"
    ),
    PlatformKey(
        "clock_hz", Form.FIGURE, "clock of the core: cycles become microseconds by it",
        "the code that sets the PLL; the datasheet's operating points", "Hz",
    ),
    PlatformKey(
        "exits", Form.TEXTS, "a path ends where a symbol begins with one of these",
        "the kernel's assembly: the last instructions before user code",
    ),
    PlatformKey(
        "pending", Form.ADDRESSES, "registers of the interrupt controller of which one is not 0 "
        "while an interrupt is pending: virtual addresses", "interrupt controller, pending",
        without="no load is a test for interrupts", example="[0xF8000058]",
    ),
    PlatformKey(
        "controller", Form.TABLE, "the interrupt controller, where kernels test fields of its "
        "registers: a number, or a raw bit and its enable bit", "interrupt controller, registers",
        without="only pending tells that an interrupt is pending",
    ),
    PlatformKey(
        "controller.source", Form.TEXT, "where its registers come from", example='"..."'
    ),
    PlatformKey(
        "controller.delay", Form.FIGURE, "the longest time from the assertion of a line by its "
        "device until the registers show it and the processor is interrupted; the latency includes "
        "it", "interrupt controller, synchronisation and sorting: its clocks times the ratio",
        "cycles", without="the latency begins when registers show the line",
        example='{ value = 20, source = "..." }',
    ),
    PlatformKey(
        "controller.stores", Form.ADDRESSES, "registers to which a store may acknowledge, disable "
        "or mask an interrupt: behind one, tests are not used. Words of fields are such registers, "
        "too", "interrupt controller: end of interrupt, priority mask, "
        "disable", without="only words of fields", example="[0xE0001010]",
    ),
    PlatformKey(
        "controller.disables", Form.ADDRESSES, "registers to which a store only disables or masks "
        "lines, so that it withdraws an interrupt of which no test has told the program; behind a "
        "test it may acknowledge, as one to stores", "interrupt controller: disable, priority mask",
        without="none is known to do only that", example="[0xE000018C]",
    ),
    PlatformKey(
        "controller.loads", Form.ADDRESSES, "registers of which a load acknowledges an interrupt: "
        "behind one, only the word that it gave is a test", "interrupt controller: acknowledge "
        "register, side effects of reads", without="no load acknowledges", example="[0xE000100C]",
    ),
    PlatformKey(
        f"controller.field{EACH}", Form.TABLES, "a field of a register, with its values while an "
        "interrupt is pending, enabled and not masked. Every entry of the list holds, and pending",
        without="no field is known",
    ),
    PlatformKey(
        f"controller.field{EACH}.registers", Form.ADDRESSES, "words, one of which has such a "
        "value: virtual addresses", "interrupt controller, registers", example="[0x48200040]",
    ),
    PlatformKey(
        f"controller.field{EACH}.mask", Form.WORD, "the bits of the field; its lowest bit is bit 0 "
        "of values", "interrupt controller, registers", without="all bits", example="0xFFFFFFFF",
    ),
    PlatformKey(
        f"controller.field{EACH}.values", Form.NUMBERS, "[first, last] value of the field while an "
        "interrupt is pending", "interrupt controller, registers", without="every value",
        example="[0, 95]",
    ),
    PlatformKey(
        f"controller.field{EACH}.without", Form.NUMBERS, "of values, those that mean none: at the "
        "ends of the range", "interrupt controller, registers", without="[0] without values, else "
        "none", example="[0xFFFFFFFF]",
    ),
    PlatformKey(
        f"controller.field{EACH}.selects", Form.ADDRESSES, "words with a bit for each line, 32 a "
        "word. The field is the number of one line, which stays the same, and its bit is set there",
        "interrupt controller, registers", without="the field selects no bit",
        example="[0x48200098, 0x482000B8, 0x482000D8]",
    ),
    PlatformKey(
        f"controller.raw{EACH}", Form.TABLES, "registers that show lines which are not enabled, "
        "too. A pending line has its bit set in one of them", without="none is known",
    ),
    PlatformKey(
        f"controller.raw{EACH}.registers", Form.ADDRESSES, "words with a bit for each line: "
        "virtual addresses", "interrupt controller, registers", example="[0xF8020410]",
    ),
    PlatformKey(
        f"controller.raw{EACH}.enabled_by", Form.ADDRESSES, "for each of registers the word in "
        "which an enabled line has its bit set", "interrupt controller, registers",
        without="there are none", example="[0xF8020440]",
    ),
    PlatformKey(
        f"controller.raw{EACH}.disabled_by", Form.ADDRESSES, "for each of registers the word in "
        "which a masked line has its bit set", "interrupt controller, registers",
        without="there are none", example="[0xF8020450]",
    ),
    PlatformKey("entries", Form.TABLE, "where paths start, by the names of --entry"),
    PlatformKey(
        f"entries.{ANY}", Form.TABLE, "an exception; interrupt is the one of the latency",
    ),
    PlatformKey(
        f"entries.{ANY}.vector", Form.ADDRESS, "address of its vector",
        "ARM ARM, exceptions: 0x0 or 0xFFFF0000 (SCTLR.V), or VBAR, and the offset",
    ),
    PlatformKey(
        f"entries.{ANY}.symbols", Form.TEXTS, "the first of these that the binary has is the "
        "start, not the vector", "the kernel's assembly",
    ),
    PlatformKey(
        f"memory{EACH}", Form.TABLES, "virtual memory of one kind. Memory without an entry may be "
        "of any kind, and is charged as uncached",
    ),
    PlatformKey(f"memory{EACH}.name", Form.TEXT, "a name for people"),
    PlatformKey(
        f"memory{EACH}.virtual", Form.RANGE, "virtual addresses, the last byte included; physical "
        "ones where the MMU is off", "the kernel's page tables",
    ),
    PlatformKey(
        f"memory{EACH}.physical", Form.ADDRESS, "the physical address of the first byte",
        "the kernel's page tables; the SoC's memory map",
        without="not known: addresses here may name any memory", example="0x80000000",
    ),
    PlatformKey(
        f"memory{EACH}.kind", Form.TEXT, "the memory type: cached is write-back, tcm is as "
        "fast as a hit", "TEX, C and B bits of the page tables", words=_values(RegionKind),
    ),
    PlatformKey(
        f"memory{EACH}.fixed", Form.FLAG, "no address-space switch changes the translation",
        "global (nG = 0) entries of every page table",
    ),
    PlatformKey(
        f"mirror{EACH}", Form.TABLES, "physical memory with a second address",
        "the SoC's memory map: address lines that are not decoded", without="there is none",
    ),
    PlatformKey(
        f"mirror{EACH}.physical", Form.RANGE, "the second addresses, the last byte included",
        example="[0x88000000, 0x8FFFFFFF]",
    ),
    PlatformKey(f"mirror{EACH}.of", Form.ADDRESS, "the first address", example="0x80000000"),
    PlatformKey("caches", Form.TABLE, "the caches; all levels have one policy"),
    PlatformKey(
        "caches.model", Form.TEXT, "replacement that is analysed. one-way counts on the line used "
        "last in each set only, which is sound for every policy", "TRM, replacement policy",
        words=_values(ReplacementPolicy),
    ),
    PlatformKey(
        "caches.aligned", Form.FLAG, "every access is aligned to its size, so touches one line",
        "SCTLR.A = 1, or compiled with -mno-unaligned-access",
    ),
    PlatformKey(
        "caches.clidr", Form.FIGURE, "word that the cache level identification register reads; "
        "with it, the cache size register of a selected cache reads the sizes below",
        "TRM, system control: c0, cache level ID", "",
        without="these registers may read any word",
        example='{ value = 0x0A000023, source = "..." }',
    ),
    PlatformKey("caches.l1i", Form.TABLE, "instruction cache"),
    *_of_first_level("caches.l1i"),
    PlatformKey("caches.l1d", Form.TABLE, "data cache"),
    *_of_first_level("caches.l1d"),
    PlatformKey(
        "caches.l1d.write_allocate", Form.FLAG, "stores that miss fill their line",
        "TRM, write-allocate", without="false", example="false",
    ),
    PlatformKey(
        "caches.l1d.write_through", Form.FLAG, "every store goes on to the next level",
        "page tables: write-through memory", without="false", example="false",
    ),
    PlatformKey(
        "caches.l1d.index", Form.TEXT, "the index: virtual where virtual bits above a page "
        "select the set",
        "TRM: virtually indexed", words=("virtual",),
        without="only address bits within a page are counted on", example='"virtual"',
    ),
    PlatformKey(
        "caches.l2", Form.TABLE, "unified level-2 cache", without="there is none"
    ),
    PlatformKey(
        "caches.l2.enabled", Form.FLAG, "whether it is on; --l2 overrides",
        "the code that enables it", example="false",
    ),
    *_of_cache("caches.l2"),
    PlatformKey("latency", Form.TABLE, "cycles of the core that an access adds to a hit"),
    PlatformKey(
        "latency.memory_l2_off", Form.FIGURE, "the longest access to memory, its first word, with "
        "the level-2 cache off or absent", "measured; SDRAM timing and bus ratio", "cycles",
    ),
    PlatformKey(
        "latency.memory_l2_on", Form.FIGURE, "the same when the level-2 cache is on and misses; "
        "the same number where there is none", "measured; SDRAM timing and bus ratio", "cycles",
    ),
    PlatformKey(
        "latency.l2_hit", Form.FIGURE, "the longest access to a line in the level-2 cache; any "
        "number from 1 on where there is none", "TRM, cycle timings; wait states", "cycles",
    ),
    PlatformKey(
        "latency.line_rest", Form.FIGURE, "from the first word of a line to its last",
        "width and ratio of the bus: beats of a line less one", "cycles",
    ),
    PlatformKey(
        "latency.replay", Form.FIGURE, "the least stall of a load that misses, and the extra wait "
        "for a full store buffer",
        "TRM, replays", "cycles", without="0", example='{ value = 0, source = "..." }',
    ),
    PlatformKey(
        "latency.fetch_restart", Form.FIGURE, "from the arrival of instructions that missed to "
        "their issue", "TRM, pipeline stages", "cycles", without="0",
        example='{ value = 0, source = "..." }',
    ),
    PlatformKey(
        "dirty_victims", Form.TABLE, "whether misses write back lines that were dirty before",
    ),
    PlatformKey("dirty_victims.l1", Form.FLAG, "true unless the data cache is clean at an entry"),
    PlatformKey("dirty_victims.l2", Form.FLAG, "the same for the level-2 cache"),
    PlatformKey("core", Form.TABLE, "the pipeline"),
    PlatformKey(
        "core.name", Form.TEXT, "a core of the project (arm1136, cortex-a8), or NAME.csv: a file "
        "in the folder of this one, with NAME.toml", "TRM, cycle timings",
    ),
    PlatformKey(
        "core.profile", Form.TEXT, "the profile: wcet, the largest figures of all sources; "
        "nominal, figures of the manual, for comparisons only", words=_values(CoreProfile),
    ),
    PlatformKey(
        "core.fetch_ahead", Form.FIGURE, "the most that is fetched past a transfer of control",
        "TRM: prefetch buffer, outstanding fetches, stages before a branch is resolved", "bytes",
    ),
    PlatformKey("branch", Form.TABLE, "branches"),
    PlatformKey(
        "branch.predictor", Form.TEXT, "the predictor that is on: none (off), or the ARM1136's "
        "without its return stack, by the direction of a branch (arm1136-static) or by its "
        "history, too (arm1136-dynamic), or with it: calls on the path decide its addresses "
        "(arm1136-returns), or they are any (arm1136-any-returns); its state is unknown, and "
        "branch.model is flag-distance",
        "SCTLR.Z; ACTLR: RS, DB, SB", words=_values(BranchPrediction),
    ),
    PlatformKey(
        "branch.model", Form.TEXT, "how branches are charged: as the ARM1136 does (flag-distance), "
        "by the core's table (core-rows), or branch.cycles each (constant)", "TRM, branches",
        words=("constant", "core-rows", "flag-distance"),
    ),
    PlatformKey(
        "branch.cycles", Form.FIGURE, "cycles of each branch; needed with constant",
        "TRM, branches", "cycles", without="only for constant",
        example='{ value = 5, source = "..." }',
    ),
    PlatformKey(
        "entry_state", Form.TABLE, "operations outstanding when an exception is taken (rule 15)"
    ),
    PlatformKey(
        "entry_state.load_misses", Form.FIGURE, "outstanding data misses, at most",
        "TRM: outstanding misses", "misses",
    ),
    PlatformKey(
        "entry_state.store_words", Form.FIGURE, "words that wait in store and write buffers",
        "TRM: write buffer", "words",
    ),
    PlatformKey(
        "entry_state.fetch_misses", Form.FIGURE, "outstanding instruction fills, at most",
        "TRM: instruction fetch", "misses",
    ),
    PlatformKey("tlb", Form.TABLE, "address translation"),
    PlatformKey(
        "tlb.model", Form.TEXT, "the walks that are charged: none, which is an assumption "
        "(assumed-resident), or one for each access to another page than the one before on its "
        "side (last-page)",
        words=("assumed-resident", "last-page"),
    ),
    PlatformKey(
        "tlb.refill", Form.FIGURE, "cycles of a walk without its reads; with reads and page, "
        "needed for last-page", "TRM, TLB", "cycles", without="no walk can be charged",
        example='{ value = 10, source = "..." }',
    ),
    PlatformKey(
        "tlb.reads", Form.FIGURE, "accesses to memory of a walk", "ARM ARM: levels of the table",
        "accesses", without="no walk can be charged", example='{ value = 2, source = "..." }',
    ),
    PlatformKey(
        "tlb.page", Form.FIGURE, "the smallest page", "the kernel's page tables", "bytes",
        without="no walk can be charged", example='{ value = 4096, source = "..." }',
    ),
    PlatformKey(
        f"tlb.large{EACH}", Form.TABLES, "ranges that larger pages map",
        "the kernel's page tables", without="every page is of the smallest size",
    ),
    PlatformKey(
        f"tlb.large{EACH}.virtual", Form.RANGE, "virtual addresses, the last byte included",
        example="[0xF0000000, 0xF7FFFFFF]",
    ),
    PlatformKey(
        f"tlb.large{EACH}.bytes", Form.NUMBER, "size of these pages", unit="bytes",
        example="1_048_576",
    ),
    PlatformKey(
        f"tlb.locked{EACH}", Form.TABLES, "ranges whose translations are locked in the TLB",
        "the code that locks them", without="none is locked",
    ),
    PlatformKey(
        f"tlb.locked{EACH}.virtual", Form.RANGE, "virtual addresses, the last byte included",
        example="[0xFFFF0000, 0xFFFF0FFF]",
    ),
    PlatformKey(
        "assumptions", Form.TABLE, "assumptions of the figures. Each line is printed in every "
        "report; {clock_mhz}, {fetch_ahead}, {load_misses}, {store_words} and {fetch_misses} "
        "stand for figures of this file",
    ),
    PlatformKey(
        f"assumptions.{ANY}", Form.TEXT, "one sentence; tlb is needed with assumed-resident"
    ),
)  # fmt: skip
BY_PATH = {key.path: key for key in KEYS}


def key_of(path: str) -> PlatformKey | None:
    """The row of ``KEYS`` for a path; None if there is none."""
    return BY_PATH.get(path)


def schema_errors(content: Mapping[str, object]) -> tuple[str, ...]:
    """The missing keys of a file, then its unknown keys, as sentences."""
    found = tuple(_schema_errors(content, "", ""))
    return tuple(sorted(found, key=lambda text: not text.endswith(": missing")))


def _schema_errors(table: Mapping[str, object], path: str, shown: str) -> Iterator[str]:
    """The errors of a table and of its inner tables; ``shown``: the path with list indices."""
    keys = {key.last: key for key in KEYS if key.parent == path}
    chosen = keys.pop(ANY, None)
    for name, key in keys.items():
        if name not in table and key.without is None:
            yield f"{shown}{name}: missing"
    for name, value in table.items():
        found = keys.get(name, chosen)
        here = f"{shown}{shortened(name)}"
        if found is None:
            near = did_you_mean(name, keys.keys() - table.keys()) or did_you_mean(name, keys)
            yield f"{here}: unknown key{near and f'; {near}'}"
        elif found.form is Form.TABLE and isinstance(value, dict):
            yield from _schema_errors(value, found.path, f"{here}.")
        elif found.form is Form.TABLES and isinstance(value, list):
            for i, inner in enumerate(value):
                if isinstance(inner, dict):
                    yield from _schema_errors(inner, found.path, f"{here}[{i}].")
        elif found.form is Form.FIGURE and isinstance(value, dict):
            yield from (
                f"{here}.{figure_key}: missing" for figure_key in FIGURE if figure_key not in value
            )
            yield from (
                f"{here}.{figure_key}: unknown key"
                for figure_key in value
                if figure_key not in FIGURE
            )
