"""The longest stretches: an analysis with the fact that excludes one gives the next one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from quoll.errors import SolverError, WcetError
from quoll.inlining.sharing import NEVER, SummarySettings
from tests.testing.harness.cases import spread
from tests.testing.wcet.decoders import DECODER, FINALISING, decoder
from tests.testing.wcet.interrupts import random_kernel
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.latency.longest import RankedStretch, longest_stretches
from wcet.latency.starts import PathStarts

SHARED = SummarySettings(contexts=0, least=2)
BRANCHES = DECODER.replace(
    "case 4: memory[0] = b; break;\n    case 5: memory[1] += b; break;\n", ""
)
DECODERS = {"a jump table": (DECODER, "-O2"), "compares": (BRANCHES, "-Os", "-fno-jump-tables")}


def analysed(
    elf: Path, facts: tuple[Path, ...] = (), sharing: SummarySettings = NEVER
) -> tuple[AnalysisRun, AnalysisResult]:
    options = AnalysisOptions(
        ("syscall",), "kzm", facts=facts, neighbouring_facts=False, summary_settings=sharing
    )
    result = analyse(elf, options, SilentStageLog())
    return AnalysisRun.begin(elf, options, SilentStageLog()), result


def cycles(one: RankedStretch) -> int | None:
    return None if one.remaining is None else one.remaining.cycles


def with_facts(
    elf: Path, folder: Path, found: Sequence[RankedStretch], sharing: SummarySettings = NEVER
) -> int | None:
    """The bound of the call if none of the excluded places executes; None if it has no path."""
    file = folder / "excluded.facts"
    places = {one.excluded for one in found} - {None}
    file.write_text("".join(f"{place:#x} never executes\n" for place in places))
    try:
        _, result = analysed(elf, (file,), sharing)
    except WcetError:
        return None
    return result.entries["syscall"].cycles


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("name", DECODERS)
def test_each_operation_of_a_decoder_has_its_stretch(name: str, tmp_path: Path) -> None:
    """The cases of a jump table, and of compares; the facts give the printed bound exactly."""
    elf = decoder(*DECODERS[name])
    run, result = analysed(elf)
    found = longest_stretches(PathStarts.of(run, result), 4)
    functions = []
    for one in found:
        stretch = one.stretch
        assert stretch.operation is not None
        assert stretch.decided is not None
        assert stretch.decided.decision.is_switch
        assert result.image.place(stretch.decided.branch).split()[1].startswith("<main+")
        functions.append(result.function(stretch.operation.functions[-1]))
    assert with_facts(elf, tmp_path, found[:1]) == cycles(found[0])
    assert with_facts(elf, tmp_path, found) == cycles(found[-1])
    assert functions == ["delete_pool", "copy", "clear", "lookup"]
    assert found[0].stretch.result.cycles == result.entries["syscall"].cycles
    assert [one.stretch.test is not None for one in found] == [False, False, True, False]
    loops = found[0].stretch.loops()
    assert [(loop.entries, loop.iterations) for loop in loops] == [(1, 400)]


@pytest.mark.slow("several whole analyses")
def test_a_stretch_behind_a_test_goes_with_its_operation(tmp_path: Path) -> None:
    """The tail of an operation behind its last test is only reached through the operation."""
    tail = (
        "    if (n) for (unsigned k = 0; k < 450; k++) memory[k] = 1;\n    return 0;\n}\nint main"
    )
    elf = decoder(DECODER.replace("    return 0;\n}\nint main", tail))
    run, result = analysed(elf)
    first, second = longest_stretches(PathStarts.of(run, result), 2)
    assert first.stretch.start is not None
    assert with_facts(elf, tmp_path, [first]) == cycles(first)
    assert second.stretch.result.cycles == cycles(first)
    assert second.stretch.start is None


@pytest.mark.slow("several whole analyses")
def test_an_operation_inside_of_a_function_summary(tmp_path: Path) -> None:
    """The place is excluded in the summary, and its callers cost less."""
    elf = decoder(FINALISING)
    run, result = analysed(elf, sharing=SHARED)
    assert result.entries["syscall"].summaries
    first, second = longest_stretches(PathStarts.of(run, result), 2)
    operation, decided = first.stretch.operation, first.stretch.decided
    assert operation is not None
    assert decided is not None
    assert [*map(result.function, operation.functions)][-3:] == ["main", "finalise", "delete_pool"]
    assert decided.decision.is_switch
    assert "<finalise+" in result.image.place(decided.branch)
    assert [loop.iterations for loop in first.stretch.loops()][:2] == [3, 3 * 400]
    assert operation.cycles > 3 * 400 * 60
    bound = with_facts(elf, tmp_path, [first], sharing=SHARED)
    assert bound is not None
    assert first.remaining is not None
    assert bound <= first.remaining.cycles < 1.1 * bound
    assert second.stretch.result.cycles == first.remaining.cycles


@pytest.mark.slow("several whole analyses")
def test_without_a_place_each_range_of_counts_has_its_path(tmp_path: Path) -> None:
    """One of three calls sweeps; the paths of the others are without the place, too."""
    sweep = """
__attribute__((noinline)) void sweep(void) {
    for (unsigned i = 0; i < 90; i++) memory[i] ^= i;
}
__attribute__((noinline)) unsigned finalise(unsigned kind) {
    if (memory[9] == kind) sweep();
"""
    head = "\n__attribute__((noinline)) unsigned finalise(unsigned kind) {\n"
    assert FINALISING.count(head) == 1
    elf = decoder(FINALISING.replace(head, sweep))
    once = tmp_path / "once.facts"
    once.write_text("sweep executes at most 1 times\n")
    run, result = analysed(elf, (once,), SHARED)
    assert any(one.by_counts for one in result.entries["syscall"].summaries)
    found = longest_stretches(PathStarts.of(run, result), 3)
    file = tmp_path / "excluded.facts"
    for number, one in enumerate(found):
        operation = one.stretch.operation
        assert operation is not None
        assert operation.cycles <= one.stretch.result.cycles
        assert all(loop.cycles <= one.stretch.result.cycles for loop in one.stretch.loops())
        places = [other.excluded for other in found[: number + 1] if other.excluded is not None]
        file.write_text("".join(f"{place:#x} never executes\n" for place in places))
        _, without = analysed(elf, (once, file), SHARED)
        assert one.remaining is not None
        bound = without.entries["syscall"].cycles
        assert bound <= one.remaining.cycles < 1.1 * bound


@pytest.mark.slow("whole analyses of random kernels")
@pytest.mark.parametrize("seed", spread([1, 2, 3, 6, 9, 13], 2))
def test_no_bound_with_the_facts_is_above_the_next_stretch(seed: int, tmp_path: Path) -> None:
    """Random operations with tests for interrupts, which begin stretches in the middle."""
    elf = random_kernel(seed)
    run, result = analysed(elf)
    found = longest_stretches(PathStarts.of(run, result), 3)
    assert found[0].stretch.result.cycles == result.entries["syscall"].cycles
    lengths = [one.stretch.result.cycles for one in found]
    assert lengths == sorted(lengths, reverse=True)
    for number, one in enumerate(found):
        if one.excluded is None:
            break  # this start is left out, and no fact says so
        bound = with_facts(elf, tmp_path, found[: number + 1])
        assert bound is None or (one.remaining is not None and bound <= one.remaining.cycles)


@pytest.mark.slow("several whole analyses")
def test_where_the_solver_fails_the_known_bound_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed program takes nothing away but the operation (rule 38)."""
    run, result = analysed(decoder(DECODER))
    starts = PathStarts.of(run, result)

    def failing(*_: object, **__: object) -> None:
        raise SolverError("it was killed")

    monkeypatch.setattr("wcet.latency.starts.paths_result", failing)
    first, second = longest_stretches(starts, 2)
    assert first.excluded is not None
    assert cycles(first) == second.stretch.result.cycles == first.stretch.result.cycles
    assert second.stretch.operation is None
    assert second.excluded is None
