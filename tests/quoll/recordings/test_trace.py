"""The reader of recordings, on files made here from the format's description."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.errors import InputError
from quoll.recordings.trace import End, RecordedAccess, Trace
from tests.testing.quoll.recordings import (
    CONTINUED,
    HEADER,
    Run,
    chunk,
    recording,
    repeat,
    trailer,
)

WORDS = st.integers(0, 2**32 - 1)


@st.composite
def run_strategy(draw: st.DrawFn) -> Run:
    pcs = draw(st.lists(WORDS, min_size=1, max_size=8))
    indices = sorted(draw(st.lists(st.integers(0, len(pcs) - 1), max_size=8)))
    accesses = [
        RecordedAccess(index, draw(WORDS), draw(st.sampled_from([1, 2, 4, 8])), draw(st.booleans()))
        for index in indices
    ]
    inner = st.integers(1, len(pcs) - 1) if len(pcs) > 1 else st.nothing()
    cuts = sorted(draw(st.sets(inner)))
    return Run(pcs, accesses, draw(st.sampled_from(End)), cuts)


def read(data: bytes, folder: Path) -> Trace:
    file = folder / "trace"
    file.write_bytes(data)
    return Trace.read(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


ONE = Run([0xFFFF0008, 0xF0010000], [RecordedAccess(1, 0x80000001, 2, True)], End.OUTSIDE, [1])


@pytest.mark.slow("many random inputs")
@given(runs=st.lists(run_strategy(), max_size=4))
def test_what_was_recorded_is_read(runs: list[Run], folder: Path) -> None:
    executions = read(recording(runs), folder).executions
    assert [(list(e.pcs), list(e.accesses()), e.end) for e in executions] == [
        (run.pcs, run.accesses, run.end) for run in runs
    ]


def test_a_repeat_is_the_same_execution(folder: Path) -> None:
    other = Run([0xFFFF0004], [], End.VECTOR, [])
    runs = [ONE, other, other, ONE, other]
    data = HEADER + ONE.chunks() + other.chunks() + repeat(1) + repeat(0) + repeat(2)
    trace = read(data + trailer(runs), folder)
    first, second = trace.distinct()
    assert trace.executions == (first, second, second, first, second)
    assert [list(e.pcs) for e in trace.executions] == [run.pcs for run in runs]


def test_copied_vectors_before_an_entry_are_left_out(folder: Path) -> None:
    accesses = [RecordedAccess(0, 0xFFFF0028, 4, False), RecordedAccess(2, 0xF0020000, 4, True)]
    run = Run([0xFFFF0008, 0xF0010000, 0xF0010004], accesses, End.OUTSIDE, [])
    data = HEADER + run.chunks() + repeat(0) + trailer([run, run])
    first, second = read(data, folder).from_entries({0xF0010000}).executions
    assert first is second
    assert list(first.pcs) == run.pcs[1:]
    assert list(first.accesses()) == [RecordedAccess(1, 0xF0020000, 4, True)]


@pytest.mark.parametrize("pcs", [[0xFFFF0008, 0xF0020000, 0xF0010000], [0xF0010000], [0xFFFF0008]])
def test_an_execution_that_begins_elsewhere_is_as_it_was_recorded(
    pcs: list[int], folder: Path
) -> None:
    trace = read(recording([Run(pcs, [], End.OUTSIDE, [])]), folder)
    assert list(trace.from_entries({0xF0010000}).executions[0].pcs) == pcs


def test_the_first_version_is_read(folder: Path) -> None:
    data = recording([ONE, ONE])
    assert len(read(data.replace(b"\x02", b"\x01", 1), folder).executions) == 2


def test_the_header_says_what_is_kernel(folder: Path) -> None:
    trace = read(recording([]), folder)
    assert (trace.low, trace.high, trace.vectors) == (0xF0000000, 0xFFFFFFFF, 0xFFFF0000)


def test_every_beginning_of_a_recording_is_refused(folder: Path) -> None:
    whole = recording([ONE, ONE])
    for length in range(len(whole)):
        with pytest.raises(InputError):
            read(whole[:length], folder)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a recording"),
        (b"\x7fELF" + bytes(100), "not a recording"),
        (HEADER.replace(b"\x02", b"\x03", 1) + trailer([]), "version 3"),
        (recording([ONE]) + b"\0", "damaged"),
        (HEADER + ONE.chunks() + trailer([]), "damaged"),
        (HEADER + ONE.chunks() + trailer([ONE], limit_reached=1), "limit"),
        (HEADER + chunk([1], [], CONTINUED) + trailer([]), "damaged"),
        (HEADER + chunk([1], [], 9) + trailer([ONE]), "damaged"),
        (HEADER + ONE.chunks() + repeat(1) + trailer([ONE, ONE]), "damaged"),
        (HEADER + ONE.chunks() + chunk([1], [], CONTINUED) + repeat(0) + trailer([]), "damaged"),
        (HEADER + ONE.chunks() + repeat(0) + trailer([ONE]), "damaged"),
        (HEADER + ONE.chunks() + repeat(0)[:6], "cut off"),
        (HEADER + chunk([], [], End.OUTSIDE) + trailer([Run([], [], End.OUTSIDE, [])]), "damaged"),
        (recording([Run([1], [RecordedAccess(1, 0, 4, False)], End.OUTSIDE, [])])[:-24], "cut off"),
        (HEADER + chunk([1], [RecordedAccess(1, 0, 4, False)], End.OUTSIDE), "damaged"),
        (
            HEADER + chunk([1, 2], [RecordedAccess(i, 0, 4, False) for i in (1, 0)], End.OUTSIDE),
            "damaged",
        ),
    ],
)
def test_what_is_not_a_whole_recording_is_refused(data: bytes, message: str, folder: Path) -> None:
    with pytest.raises(InputError, match=message):
        read(data, folder)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Trace.read(tmp_path / "none")
