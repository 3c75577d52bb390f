"""Nothing that can change an answer is missing from the key of a stored result (rules 30, 31).

Every option of the command line, every field of the request, of the platform and of every fact, and
every class of bytes of the inputs is changed in turn; this file or ``LEFT_OUT`` names each input
that changes no key, with the reason.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ilp.solvers import cbc
from loopbounds.nusmv import nusmv_run as nusmv
from quoll.errors import InputError, SolverError
from quoll.facts.entry_invariants import ArrayElements
from quoll.facts.fact import Fact, FactSource
from quoll.facts.predicate import Comparison, MemoryWord, Predicate, WordSum
from quoll.facts.read import Facts
from quoll.image.elf import RawSymbol
from quoll.image.image import DERIVED, Image, RawMemory
from quoll.results.cache_key import key_of
from quoll.results.results_store import NOWHERE
from quoll.results.versions import file_version
from tests.testing.quoll.building import build
from tests.testing.quoll.fact_kinds import fact_kinds
from wcet.analysis import request_key as module
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.request_key import LEFT_OUT, matters, request_key, solutions_key
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.cli import parser
from wcet.request import requested

PROGRAM = """\
unsigned table[8];
unsigned main(unsigned a) {
    for (unsigned i = 0; i < 8; i++)
        a += table[i];
    return a;
}
"""
# How each option of 'wcet analyse' is changed; "/" stands for the folder of the program.
CHANGES = {
    "--platform": ["--platform", "kzm-paper"],
    "--l2": ["--l2", "on"],
    "--tlb": ["--tlb", "last-page"],
    "--data-index": ["--data-index", "virtual"],
    "--facts": ["--facts", "/my.facts"],
    "--no-facts": ["--no-facts"],
    "--source-dir": ["--source-dir", "/sources"],
    "--from-reset": ["--from-reset"],
    "--raw": ["--raw", "/prog.elf@0x100"],
    "--symbols": ["--symbols", "/symbols"],
    "--end": ["--end", "main"],
    "--force-core": ["--force-core"],
    "--unroll": ["--unroll"],
    "--share": ["--share", "always"],
    "--solver": ["--solver", "cbc"],
    "--time-limit": ["--time-limit", "9"],
    "--checker": ["--checker", "smt"],
    "--prove-stated": ["--prove-stated"],
}
# Options that change no key, and why.
SAME = {
    "--help": "nothing is analysed",
    "--entry": "an entry has a key of its own: see the test of entries",
    "--set": "read by the integer program, which is solved anew: see the test of its answer",
    "--interrupts": "the latency is computed anew",
    "--cache": "says where",
    "--no-cache": "nothing is kept, so there is no key",
    "--smv": "nothing is recalled, so there is no key",
    "--paths": "what is printed",
    "--json": "what is printed",
    "--html": "what is printed",
    "--baseline": "what is printed is compared with it",
    "--lp": "what is printed",
    "--mps": "what is printed",
    "--stats": "what is printed",
    "--suggest-facts": "what is printed",
    "--suggest-within": "what is printed",
    "--color": "what is printed",
    "--quiet": "what is printed",
    "--assumptions": "what is printed",
    "--details": "what is printed",
    "--wide": "what is printed",
}


class Asked:
    """Requests about one program with facts beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.elf = folder, folder / "prog.elf"
        shutil.copy(build(PROGRAM), self.elf)
        (folder / "prog.facts").write_text("loop prog.c:3 at most 9\n")
        (folder / "my.facts").write_text("prog.c:4 never executes\nloop prog.c:3 at most 9\n"
                                         "branch at prog.c:3 is always taken\n")  # fmt: skip
        (folder / "n.facts").write_text("loop prog.c:4 at most n\n")
        (folder / "sources").mkdir()
        written = PROGRAM.replace("i++)", "i++)  // wcet: loop at most 9")
        (folder / "sources/prog.c").write_text(written)
        (folder / "symbols").write_text("00009000 T more\n")

    def run(self, *options: str) -> AnalysisRun:
        """The beginning of a run."""
        given = [o.replace("/", f"{self.folder}/", 1) if o.startswith("/") else o for o in options]
        base = ["analyse", str(self.elf), "--cache", str(self.folder / "cache"), "--entry", "main"]
        read = parser("analyse").parse_args([*base, *given])
        return AnalysisRun.begin(
            self.elf, requested(read, read.entry, read.smv), StageLog(verbose=False)
        )

    def key(self, *options: str) -> str:
        """The key of its entry."""
        run = self.run("--platform", "kzm", *options)
        return run.store.key("main", run.entries["main"])


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("asked"))


@pytest.mark.slow("a key for every byte and every field")
def test_every_option_changes_the_key(asked: Asked) -> None:
    """An option that is added has to be put into one of the two tables."""
    commands = parser("analyse")._subparsers
    assert commands is not None
    (command,) = commands._group_actions
    assert isinstance(command.choices, Mapping)
    options = {
        a.option_strings[-1] for a in command.choices["analyse"]._actions if a.option_strings
    }
    assert options == CHANGES.keys() | SAME.keys()
    first = asked.key()
    assert asked.key("--quiet") == first
    keys = {option: asked.key(*change) for option, change in CHANGES.items()}
    keys["--raw :r"] = asked.key("--raw", "/prog.elf@0x100:r")
    keys["--raw elsewhere"] = asked.key("--raw", "/prog.elf@0x104")
    keys["--share never"] = asked.key("--share", "never")
    assert first not in keys.values(), [o for o, key in keys.items() if key == first]
    assert len(set(keys.values())) == len(keys)
    assert not asked.key("--no-cache")
    assert not asked.key("--smv", "/smv")


def test_entries_have_keys_of_their_own(asked: Asked) -> None:
    run = asked.run()
    names = {run.store.key(name, at) for name in ("main", "other") for at in (0x8000, 0x8001)}
    assert len(names) == 4


def variants(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """``value`` with one of its parts changed, and which; each part in turn."""
    if isinstance(value, bool):
        yield where, not value
    elif isinstance(value, (int, float)):
        yield where, value + 1
    elif isinstance(value, str):
        yield where, value + "x"
    elif isinstance(value, bytes):
        yield where, value + b"x"
    elif value is None:
        yield where, 1
    elif isinstance(value, Path):
        yield where, value / "x"
    elif isinstance(value, Enum):
        others = [other for other in type(value) if other is not value]
        yield from ((where, other) for other in others[:1])
    elif is_dataclass(value) and not isinstance(value, type):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        for field in fields(value):
            for part, changed in variants(getattr(value, field.name), f"{name}.{field.name}"):
                made = copy.copy(value)
                object.__setattr__(made, field.name, changed)
                yield part, made
    elif isinstance(value, tuple) and hasattr(value, "_make"):
        for position, item in enumerate(value):
            for part, changed in variants(item, where):
                yield part, value._make((*value[:position], changed, *value[position + 1 :]))
    elif isinstance(value, tuple):
        yield where, (*value, 1)
        for position, item in enumerate(value):
            for part, changed in variants(item, where):
                yield part, (*value[:position], changed, *value[position + 1 :])
    elif isinstance(value, frozenset):
        yield where, value | {1}
    elif isinstance(value, Mapping):
        yield where, {**value, "x": 1}
        for name, item in value.items():
            yield from ((part, {**value, name: c}) for part, c in variants(item, where))
    else:
        assert where.endswith(".store"), f"{where}: {value!r} cannot be changed"
        yield where, NOWHERE


def left_out(where: str) -> bool:
    """Whether a part is said not to be in the key."""
    name, _, field = where.rpartition(".")
    return field in LEFT_OUT.get(name, {})


@pytest.mark.slow("a key for every byte and every field")
def test_every_part_of_a_request_and_of_a_platform_is_in_the_key(asked: Asked) -> None:
    """Every nested field down to each number changes the key, except the fields in ``LEFT_OUT``."""
    run = asked.run("--platform", "kzm-paper", "--raw", "/prog.elf@0x100", "--l2", "on",
                    "--symbols", "/symbols", "--facts", "/n.facts", "--set", "n=1",
                    "--end", "main")  # fmt: skip

    def key(options: AnalysisOptions, platform: Any) -> str:
        return request_key(options, run.image, platform, run.facts, run.exits)

    first, seen = key(run.options, run.platform), set()
    for where, options in variants(run.options):
        assert (key(options, run.platform) == first) == left_out(where), where
        seen.add(where)
    for where, platform in variants(run.platform):
        assert (key(run.options, platform) == first) == left_out(where), where
        seen.add(where)
    named = {f"{name}.{field}" for name, less in LEFT_OUT.items() for field in less}
    assert {where for where in named if "Source" not in where} <= seen
    assert len(seen) > 60
    assert all(reason for less in LEFT_OUT.values() for reason in less.values())


def every_kind() -> list[Fact]:
    """One fact of each kind, made of its fields."""
    compared = Comparison(WordSum((MemoryWord("main"),), 0), "<=", WordSum((), 3))
    values: dict[str, object] = {
        "int": 3, "str": "main", "bool": True, "str | None": "main", "int | None": 3,
        "tuple[str, ...]": ("main",), "tuple[tuple[int, str], ...]": ((1, "main"),),
        "Predicate": Predicate(((compared,),)), "ArrayElements | None": ArrayElements("main", 3, 8),
    }  # fmt: skip
    source = FactSource("my.facts", 1, "text")
    made: list[Fact] = []
    for kind in fact_kinds():
        given = {
            f.name: source if f.name == "source" else values[str(f.type)] for f in fields(kind)
        }
        make: Callable[..., Fact] = kind
        made.append(make(**given))
    return made


@pytest.mark.slow("a key for every byte and every field")
def test_every_field_of_every_fact_is_in_the_key(asked: Asked) -> None:
    """But where it stands, and facts of which only the integer program takes notice."""
    run = asked.run()

    def key(*facts: Fact) -> str:
        return request_key(run.options, run.image, run.platform, Facts(facts), run.exits)

    none, seen = key(), 0
    for fact in every_kind():
        first = key(fact)
        assert (first == none) == (not matters(fact)), fact
        for where, other in variants(fact):
            same = left_out(where) or (not matters(fact))
            assert (key(other) == first) == same, where
            seen += 1
    assert seen > 60
    walked = [fact for fact in every_kind() if matters(fact)]
    assert len({key(fact) for fact in walked}) == len(walked) > 10
    assert key(*walked) != key(*reversed(walked))


@pytest.mark.slow("a key for every byte and every field")
def test_every_field_of_every_fact_is_in_the_key_of_solutions(asked: Asked) -> None:
    """Also where it stands, and facts of which only the integer program takes notice."""
    options = asked.run().options

    def key(*facts: Fact) -> str:
        return solutions_key(options, Facts(facts))

    facts = every_kind()
    for fact in facts:
        first = key(fact)
        for where, other in variants(fact):
            assert key(other) != first, where
    assert len({key(), *map(key, facts)}) == len(facts) + 1
    assert key(*facts) != key(*reversed(facts))
    numbers = [solutions_key(replace(options, parameters={"n": n}), Facts(())) for n in (1, 2)]
    assert len({key(), *numbers}) == 3


@pytest.mark.slow("changes each byte of the inputs")
def test_every_byte_of_the_inputs_is_in_the_key(asked: Asked) -> None:
    """Headers, flags, attributes, symbols, lines, code, data: as the file has them."""
    data = asked.elf.read_bytes()
    path = asked.folder / "changed.elf"
    first, loaded = Image.load(asked.elf).identity, 0
    for at in [*range(200), *range(200, len(data), 61)]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        try:
            image = Image.load(path)
        except InputError:
            continue
        loaded += 1
        assert image.identity != first, at
    assert loaded > 50


def test_every_flag_of_a_dump_and_every_field_of_a_symbol_is_in_the_key(asked: Asked) -> None:
    """The flag of ``--raw F@A:r`` was not: 3,726 cycles recalled, 384,458 computed."""
    dump = RawMemory(0x100, str(asked.elf))
    symbol = RawSymbol("a", 0x9000, 4, "STT_FUNC", "STB_GLOBAL", True)
    first = Image.load(asked.elf, (dump,), (symbol,)).identity
    keys = [first, Image.load(asked.elf).identity, Image.load(asked.elf, (dump,)).identity]
    for where, other in variants(dump):
        if not where.endswith(".path"):
            keys.append(Image.load(asked.elf, (other,), (symbol,)).identity)
    keys += [Image.load(asked.elf, (dump,), (s,)).identity for _, s in variants(symbol)]
    other = asked.folder / "other.bin"
    other.write_bytes(asked.elf.read_bytes() + b"\0")
    keys.append(Image.load(asked.elf, (replace(dump, path=str(other)),), (symbol,)).identity)
    keys.append(Image.load(asked.elf, (dump, replace(dump, addr=0x200)), (symbol,)).identity)
    keys.append(Image.load(asked.elf, (replace(dump, addr=0x200), dump), (symbol,)).identity)
    assert len(set(keys)) == len(keys)
    shutil.copy(asked.elf, asked.folder / "copy.bin")
    moved = replace(dump, path=str(asked.folder / "copy.bin"))
    assert Image.load(asked.elf, (moved,), (symbol,)).identity == first
    assert Image.load(asked.elf).holding([(1, 2)]).identity not in keys


def test_whatever_is_said_of_an_image_is_in_its_identity(asked: Asked) -> None:
    """An attribute that is added is, unless it is said to follow from the bytes."""
    image = Image.load(asked.elf)
    first = image.identity
    assert vars(image).keys() > DERIVED - {"lines", "types"}
    assert image.line(image.entry) is not None
    assert image.types.signature(image.entry) is not None
    image.begin_lines()
    assert image.identity == first
    image.__dict__["_said"] = 1
    assert image.identity != first


@pytest.mark.parametrize("change", ["versions", "NuSMV", "CBC", "no NuSMV", "no CBC"])
def test_every_program_is_in_the_key(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    first = asked.key()
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def missing() -> Path:
        raise SolverError("missing")

    if change == "versions":
        monkeypatch.setattr(module, "versions", lambda *folders: (*folders, "later"))
    elif change == "NuSMV":
        monkeypatch.setattr(module, "find_solver", lambda: program)
    elif change == "CBC":
        monkeypatch.setattr(cbc, "bundled", lambda: program)
    elif change == "no NuSMV":
        monkeypatch.setattr(module, "find_solver", missing)
    else:
        monkeypatch.setattr(cbc, "bundled", missing)
    assert asked.key() != first


def test_programs_are_told_apart_by_their_bytes() -> None:
    found = dict(module.programs())
    assert found["NuSMV"] == file_version(Path(nusmv.find_solver()).resolve())
    assert found["CBC"] == file_version(cbc.bundled().resolve())


def test_classes_on_the_list_exist() -> None:
    """A class that moves would silently be walked whole; that is safe, and not meant."""
    for name, less in LEFT_OUT.items():
        package, _, kind = name.rpartition(".")
        known = {field.name for field in fields(getattr(import_module(package), kind))}
        assert less.keys() <= known


def test_keys_tell_their_parts_apart(asked: Asked) -> None:
    run = asked.run()
    parts = (run.options, run.platform, run.facts)
    keys = [key_of("q", *parts[:n], left_out=LEFT_OUT) for n in range(len(parts) + 1)]
    assert all(a != b for a, b in pairwise(keys))
