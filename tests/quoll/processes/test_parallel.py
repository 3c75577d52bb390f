"""Work in several processes gives the same results as in one, even if a process fails."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from quoll.extraction import work_list as growth
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.processes.children import apart
from quoll.processes.futures import submit
from quoll.processes.parallel_map import parallel_map, two_step_map
from quoll.processes.worker import worker
from tests.testing.quoll.building import build

pytestmark = pytest.mark.usefixtures("all_processors")

HERE = os.getpid()
PRINTS = """
int siprintf(char *, const char *, ...);
void qsort(void *, int, int, int (*)(const void *, const void *));
int main(int n, int (*order)(const void *, const void *)) {
    char text[40];
    qsort(text, siprintf(text, "%d", n), 1, order);
    return text[0];
}
"""


def square(number: int) -> int:
    return number * number


@pytest.mark.parametrize("worth", [0, 1000])
def test_results_keep_their_order(worth: int) -> None:
    assert parallel_map(square, [1, 5, 2, 9, 1], worth) == [0, 1, 4, 9, 16]
    assert parallel_map(square, [], worth) == []


def test_other_processes_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    processes = parallel_map(lambda _: os.getpid(), [3, 3], 0)
    assert HERE in processes
    assert len(set(processes)) == 2


def test_each_of_many_pieces_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    weights = [n % 7 * (900 if n % 500 == 0 else 1) for n in range(5000)]
    done = parallel_map(lambda number: (number, os.getpid()), weights, 0)
    assert [number for number, _ in done] == list(range(5000))
    assert len({process for _, process in done}) == 3


def test_what_a_failed_process_was_to_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_elsewhere(number: int) -> int:
        if os.getpid() != HERE:
            os._exit(3)
        return number

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert parallel_map(fails_elsewhere, [1, 1, 1, 1], 0) == [0, 1, 2, 3]


def test_an_error_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(number: int) -> int:
        raise ValueError(number)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(ValueError, match="0"):
        parallel_map(fails, [1, 1], 0)


def test_an_error_here_ends_the_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone() -> None:
        """In a process that has no other children, as this one may have."""
        here = os.getpid()

        def fails_here(number: int) -> None:
            if os.getpid() == here:
                raise ValueError(number)
            time.sleep(1000)

        with pytest.raises(ValueError, match="0"):
            parallel_map(fails_here, [1, 1, 1], 0)
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert apart(alone, 60) is None


def scaled(index: int, known: int, by: int) -> tuple[int, int]:
    return known * by, os.getpid()


@pytest.mark.parametrize("processors", [{0}, {0, 1}, {0, 1, 2}])
@pytest.mark.parametrize("worth", [0, 1000])
def test_the_second_step_gets_what_was_found_during_the_first(
    processors: set[int], worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors)
    with two_step_map(square, scaled, [1, 5, 2, 9, 1], worth) as finished:
        assert [result for result, _ in finished(3)] == [0, 3, 12, 27, 48]
    with two_step_map(square, scaled, [], worth) as finished:
        assert finished(3) == []


def test_other_processes_do_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    first, second = os.pipe()

    def tells(index: int) -> int:
        os.write(second, b"%d" % index)
        return index

    with two_step_map(tells, scaled, [5, 5], 0) as finished:
        assert os.read(first, 1) + os.read(first, 1) in (b"01", b"10")
        assert {process for _, process in finished(1)}.isdisjoint({HERE})
    for end in (first, second):
        os.close(end)


def test_the_second_step_of_a_process_that_failed_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails_elsewhere(index: int, known: int, by: int) -> int:
        if os.getpid() != HERE:
            os._exit(3)
        return index + known + by

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    with two_step_map(square, fails_elsewhere, [1, 1, 1, 1], 0) as finished:
        assert finished(1) == [1, 3, 7, 13]


def test_an_error_between_the_steps_ends_the_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def alone() -> None:
        with (
            pytest.raises(ValueError, match="meanwhile"),
            two_step_map(lambda _: time.sleep(1000), lambda *_: None, [1, 1, 1], 0),
        ):
            raise ValueError("meanwhile")
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert apart(alone, 60) is None


@pytest.mark.parametrize("processors", [{0}, {0, 1}])
def test_a_submitted_call_has_its_result(
    processors: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors)
    future = submit(os.getpid)
    assert (future.result() == HERE) == (len(processors) == 1)
    assert submit(lambda: 5 if os.getpid() == HERE else os._exit(3)).result() == 5
    future = submit(lambda: 6)
    assert parallel_map(lambda _: future.result() if os.getpid() != HERE else 6, [1, 1], 0) == [
        6,
        6,
    ]
    assert future.result() == 6


def test_a_future_is_cancelled_at_the_end_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone() -> None:
        def stops() -> None:
            with submit(lambda: time.sleep(1000)):
                raise ValueError("meanwhile")

        with pytest.raises(ValueError, match="meanwhile"):
            stops()
        with submit(lambda: 6) as future:
            assert future.result() == 6
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert apart(alone, 60) is None


def summing(dies_at: int = 0) -> Callable[[int], tuple[int, int]]:
    """The sum of the queries so far, and the process; a worker dies at query ``dies_at``."""
    total = 0

    def answer(number: int) -> tuple[int, int]:
        nonlocal total
        total += number
        if number == dies_at and os.getpid() != HERE:
            os._exit(3)
        return total, os.getpid()

    return answer


@pytest.mark.parametrize("processors", [{0}, {0, 1}])
@pytest.mark.parametrize("worth", [False, True])
def test_a_worker_remembers_its_arguments(
    processors: set[int], worth: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: processors)
    answers = []
    with worker(summing(), worth=worth) as other:
        for number in (1, 2, 3):
            other.submit(number)
            answers.append(other.result())
    assert [total for total, _ in answers] == [1, 3, 6]
    assert ({process for _, process in answers} == {HERE}) == (not worth or len(processors) == 1)


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_the_calls_of_a_dead_worker_are_made_here(
    dies_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, in its order."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    answers = []
    with worker(summing(dies_at), worth=True) as other:
        for number in (1, 2, 3, 4):
            other.submit(number)
            answers.append(other.result())
    assert [total for total, _ in answers] == [1, 3, 6, 10]
    assert [process == HERE for _, process in answers] == [n >= dies_at for n in (1, 2, 3, 4)]


def test_no_worker_outlives_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone() -> None:
        def stops() -> None:
            with worker(time.sleep, worth=True) as other:
                other.submit(1000)
                raise ValueError("meanwhile")

        with pytest.raises(ValueError, match="meanwhile"):
            stops()
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert apart(alone, 60) is None


def test_a_line_table_decoded_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    path = build("int main(int n) {\n    return n + 1;\n}\n")
    expected, other = Image.load(path).lines, Image.load(path)
    monkeypatch.setattr("quoll.image.image.LONG", 1)
    other.begin_lines()
    monkeypatch.setattr("quoll.image.image.decode_lines", None)  # not here any more
    other.settle_lines()
    assert other.lines == expected
    assert expected.lines


@pytest.mark.slow("many random programs")
def test_extraction_is_the_same_in_one_process_and_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formatted output has jump tables, arrays on the stack, returns not proved and pointers."""
    link = ("-lc", "-lgcc", "-Wl,--unresolved-symbols=ignore-all")
    image = Image.load(build(PRINTS, link=link))
    entries = [s.addr | s.thumb for s in image.symbols.symbols if s.kind == "func"]
    monkeypatch.setattr(growth, "WORTH", 0)
    programs = []
    for count in (1, 2):
        processors = set(range(count))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, found=processors: found)
        programs.append(extract(image, entries))
    assert programs[0] == programs[1]
    assert any(len(table.targets) > 50 for table in programs[0].jump_tables)
    assert programs[0].unresolved
