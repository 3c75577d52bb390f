"""The recorder, on a program of which every kernel instruction is known (recorded.S)."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from quoll.errors import InputError
from quoll.recordings.trace import End, Execution, RecordedAccess, Trace
from tests.testing.harness import qemu

HERE = Path(__file__).parent
UNDEFINED, CALL, PREFETCH_ABORT, DATA_ABORT, INTERRUPT = (
    0xFFFF0000 + slot for slot in (0x04, 0x08, 0x0C, 0x10, 0x18)
)
UART_TX = 0x43F90040
INTFRCL = 0x68000054
REPETITIONS = 40000


@dataclass(frozen=True)
class Program:
    elf: Path
    symbols: dict[str, int]

    def at(self, symbol: str, *offsets: int) -> list[int]:
        """Instruction addresses in a function of the program."""
        return [self.symbols[symbol] + offset for offset in offsets]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    elf = tmp_path_factory.mktemp("recorded") / "recorded.elf"
    subprocess.run(
        [
            *["arm-none-eabi-gcc", "-nostdlib", "-mcpu=arm1136jf-s", "-Wl,--build-id=none"],
            *["-T", str(HERE / "recorded.ld"), "-o", str(elf), str(HERE / "recorded.S")],
        ],
        check=True,
    )
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return Program(elf, {s.name: s["st_value"] for s in table.iter_symbols()})


@pytest.fixture(scope="module")
def executions(program: Program, tmp_path_factory: pytest.TempPathFactory) -> tuple[Execution, ...]:
    trace = tmp_path_factory.mktemp("a trace, here") / "trace"
    done = qemu.run_elf(program.elf, trace)
    assert (done.returncode, done.stdout) == (7, "B")
    return Trace.read(trace).executions


def accesses(execution: Execution, literals: tuple[int, int]) -> list[tuple[int, int, int, bool]]:
    """All accesses but the loads of literals, of which only the size is checked."""
    kept = []
    for access in execution.accesses():
        if literals[0] <= access.addr < literals[1] or access.addr >= 0xFFFF0020:
            assert (access.size, access.store) == (4, False), access
        else:
            kept.append((access.index, access.addr, access.size, access.store))
    return kept


def words(index: int, start: int, count: int, store: bool) -> list[tuple[int, int, int, bool]]:
    return [(index, start + 4 * i, 4, store) for i in range(count)]


def test_every_execution_is_there(executions: tuple[Execution, ...]) -> None:
    assert [(execution.entry, execution.end) for execution in executions] == [
        (CALL, End.OUTSIDE),
        (UNDEFINED, End.OUTSIDE),
        (DATA_ABORT, End.OUTSIDE),
        (PREFETCH_ABORT, End.OUTSIDE),
        (CALL, End.VECTOR),
        (DATA_ABORT, End.OUTSIDE),
        (CALL, End.VECTOR),
        (INTERRUPT, End.OUTSIDE),
        (CALL, End.OUTSIDE),
    ]


def test_every_instruction_is_there_in_order(
    program: Program, executions: tuple[Execution, ...]
) -> None:
    at = program.at
    dispatch = [CALL, *at("call", 0x00, 0x04, 0x08)]
    assert [list(execution.pcs) for execution in executions[:8]] == [
        [CALL, *at("call", *range(0x00, 0x40, 4))],
        [UNDEFINED, *at("undefined", 0)],
        [DATA_ABORT, *at("data_abort", 0, 4)],
        [PREFETCH_ABORT, *at("prefetch_abort", 0, 4)],
        # shared: at the address it runs at, though boot ran it at another.
        [*dispatch, *at("fault", 0), *at("shared", 0, 4), *at("fault", 4, 8)],
        [DATA_ABORT, *at("data_abort", 0, 4), *at("fault", 0xC)],
        [*dispatch, *at("call", 0x0C, 0x10), *at("force", 0, 4, 8, 0xC)],
        [INTERRUPT, *at("interrupt", 0, 4, 8, 0xC)],
    ]


def test_every_access_is_there_with_its_instruction(
    program: Program, executions: tuple[Execution, ...]
) -> None:
    [data] = program.at("data", 0)
    [saved] = program.at("stack", -16)
    [aborted] = program.at("abort_stack", -8)
    [literals] = program.at("literals", 0)
    push = words(1, saved, 4, True)

    def pop(index: int) -> list[tuple[int, int, int, bool]]:
        return words(index, saved, 4, False)

    assert [accesses(execution, (literals, literals + 64)) for execution in executions[:8]] == [
        [
            *push,
            (10, data + 1, 1, False),
            (12, UART_TX, 4, True),
            (13, data + 2, 2, True),
            *words(14, data + 8, 2, False),
            *words(15, data + 16, 2, True),
            *pop(16),
        ],
        [],
        words(1, aborted, 2, True),
        [],
        push,
        # The frame of the abort that came from user is still below it.
        [*words(1, aborted - 8, 2, True), *pop(3)],
        [*push, (8, INTFRCL, 4, True), *pop(9)],
        [(3, INTFRCL, 4, True)],
    ]


def test_loads_of_literals_and_of_the_vector_page_are_accesses(
    program: Program, executions: tuple[Execution, ...]
) -> None:
    [literals] = program.at("literals", 0)
    undefined, call = executions[1], executions[0]
    assert list(undefined.accesses()) == [RecordedAccess(0, 0xFFFF0020, 4, False)]
    loads = [a.index for a in call.accesses() if literals <= a.addr < literals + 64]
    assert loads == [8, 11]


def test_a_long_execution_is_one(program: Program, executions: tuple[Execution, ...]) -> None:
    last = executions[8]
    turn = program.at("repeat", 8, 0xC, 0x10)
    head = [CALL, *program.at("call", *range(0, 0x1C, 4)), *program.at("repeat", 0, 4)]
    assert list(last.pcs) == [*head, *turn * REPETITIONS, *program.at("repeat", 0x14)]
    [data] = program.at("data", 0)
    stores = [(a.index, a.addr) for a in last.accesses() if a.store][4:]
    assert stores == [(len(head) + 3 * i, data) for i in range(REPETITIONS)]


def test_only_the_given_range_is_kernel(program: Program, tmp_path: Path) -> None:
    [start, end] = program.at("undefined", 0, 0x1F)
    qemu.run_elf(program.elf, tmp_path / "trace", low=start, high=end)
    executions = Trace.read(tmp_path / "trace").executions
    assert [list(execution.pcs) for execution in executions] == [
        [CALL],
        [UNDEFINED, start],
        *([v] for v in (DATA_ABORT, PREFETCH_ABORT, CALL, DATA_ABORT, CALL, INTERRUPT, CALL)),
    ]


def test_runs_are_the_same_byte_for_byte(program: Program, tmp_path: Path) -> None:
    files = [tmp_path / "first", tmp_path / "second"]
    for file in files:
        qemu.run_elf(program.elf, file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_recording_that_reached_its_limit_is_refused(program: Program, tmp_path: Path) -> None:
    qemu.run_elf(program.elf, tmp_path / "trace", limit=100)
    with pytest.raises(InputError, match="limit"):
        Trace.read(tmp_path / "trace")


def test_each_path_has_the_executions_that_are_asked_for(tmp_path: Path) -> None:
    """All paths; of each, the first executions that differ in their accesses."""
    counted: list[Counter[tuple[bytes, End]]] = []
    sizes: tuple[dict[str, int], ...] = ({}, {"variants": 2})
    for options in sizes:
        qemu.record(tmp_path / "trace", "kzm-after", "pingpong", **options)
        distinct = Trace.read(tmp_path / "trace").distinct()
        counted.append(Counter((e.pcs.tobytes(), e.end) for e in distinct))
    every, few = counted
    assert max(every.values()) > 2
    assert few == {path: min(number, 2) for path, number in every.items()}


@pytest.mark.parametrize("number", ["low=0xg", "low=", "low=0x100000000", "speed=1", "low"])
def test_a_bad_option_is_refused(program: Program, tmp_path: Path, number: str) -> None:
    [option, argument] = qemu.plugin(tmp_path / "trace")
    done = qemu.run([*qemu.KZM, "-kernel", str(program.elf), option, f"{argument},{number}"])
    assert done.returncode != 0
    assert "recorder: bad option" in done.stdout


def test_a_command_that_hangs_is_killed_with_all_it_started() -> None:
    start = time.monotonic()
    with pytest.raises(AssertionError, match="sh ran over"):
        qemu.run(["sh", "-c", "sleep 60; echo never"], seconds=0.2)
    # A sleep that survives keeps the pipe open, and the run waits for it.
    assert time.monotonic() - start < 30
