"""The compiled machines agree with the Python machines, cycle for cycle, and are fast."""

from __future__ import annotations

import hashlib
import subprocess
import sysconfig
import time
from pathlib import Path
from random import Random

import pytest

from cache.cache_simulator import SimulatedCache
from cache.policy import ReplacementPolicy
from pipeline import native
from pipeline.core import load_core
from pipeline.native import (
    CompiledTrace,
    Instructions,
    SplitMix,
    execute,
    execute_in_turn,
    exported,
)
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.timing_model import CoreProfile, MemoryLatencies
from quoll.errors import TimingError
from quoll.intervals.strided_interval import ValueSet
from quoll.results.results_store import ResultsStore
from tests.testing.cache.graphs import DATA, at, pool, random_program
from tests.testing.harness.cases import cases
from tests.testing.pipeline.climbed import copied
from tests.testing.pipeline.runs import (
    BOARDS,
    ENTRY,
    KZM,
    MIXED,
    WARM,
    Board,
    random_machine,
    random_path,
    warm_machine,
)

CASES = cases(120)


def in_python(machine: PipelineMachine, trace: CompiledTrace) -> tuple[int, list[int]]:
    """Finished, and the clock after each step."""
    machine.start(trace.first)
    clocks = []
    for step, target in zip(trace.executed, trace.steps[:, 3].tolist(), strict=True):
        machine.execute(step)
        clocks.append(machine.clock)
        if target >= 0:
            machine.start(target)
    return machine.finished, clocks


@pytest.mark.slow("simulates each program twice")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
def test_the_same_cycles_as_in_python(board: Board) -> None:
    assert native.library() is not None, "a C compiler is part of the set-up"
    operations = 0
    for seed in range(CASES):
        random = Random(seed)
        warm = random.random() < 0.3
        text = random.choice([MIXED, WARM])
        program = random_program(
            random, maintenance=not warm, text=text, operations=board.operations
        )
        if warm:
            for key in program.values:
                program.values[key] = ValueSet.of(DATA + 4 * random.randrange(200))
        path = random_path(program, random, 30)
        steps = [step for node in path.steps for step in node]
        operations += sum(step.insn.mnemonic == "mcr" for step in steps)
        trace = CompiledTrace.of(Instructions(load_core(board.core, CoreProfile.NOMINAL)), steps)
        ends, ahead = [], random.choice([0, 48, 144])
        for run in (in_python, lambda m, t: (execute(m, t), t.issued.tolist())):
            draws = SplitMix(seed)
            machine = (
                warm_machine(draws, board) if warm else random_machine(draws, ahead, ENTRY, board)
            )
            ends.append((run(machine, trace), draws.state))
        assert ends[0] == ends[1], f"seed {seed}"
    assert operations > 30


@pytest.mark.parametrize("policy", ReplacementPolicy)
def test_every_policy_replaces_the_same_lines_as_in_python(policy: ReplacementPolicy) -> None:
    """Loads and stores of six lines of one set, of four ways."""
    load, store = (at(insn, 4 * i) for i, insn in enumerate(pool("ldr r0, [r1]\nstr r0, [r1]\n")))
    core, geometry = load_core("arm1136", CoreProfile.NOMINAL), KZM.geometries[0]
    for seed in range(40):
        random = Random(seed)
        steps = [
            ExecutedInsn(insn, True, False, DATA + way * geometry.size // geometry.ways)
            for insn, way in (
                (random.choice((load, store)), random.randrange(6)) for _ in range(40)
            )
        ]
        trace = CompiledTrace.of(Instructions(core), steps)
        ends = []
        for run in (in_python, lambda m, t: (execute(m, t), t.issued.tolist())):
            draws = SplitMix(seed)
            caches = [SimulatedCache(geometry, policy, draws) for _ in range(2)]
            chip = FetchAndCaches(caches[0], caches[1], 0, draws)
            ends.append(run(PipelineMachine(core, MemoryBus(KZM.memory), chip), trace))
        assert ends[0] == ends[1], f"seed {seed}"


def test_a_path_may_load_any_number_of_lines() -> None:
    """Before, the table of their arrivals was full after 16,384 lines, and the call did not end."""
    (load,) = (at(insn, 0) for insn in pool("ldr r0, [r1]\n"))
    core, geometry = load_core("arm1136", CoreProfile.NOMINAL), KZM.geometries[0]
    lines = [DATA + geometry.line_bytes * n for n in range(20_000)]
    steps = [ExecutedInsn(load, True, False, line) for line in (*lines, *lines[-100:])]
    trace, ends = CompiledTrace.of(Instructions(core), steps), []
    for run in (in_python, lambda m, t: (execute(m, t), t.issued.tolist())):
        draws = SplitMix(1)
        caches = [SimulatedCache(geometry, ReplacementPolicy.RANDOM, draws) for _ in range(2)]
        chip = FetchAndCaches(caches[0], caches[1], 0, draws)
        ends.append(run(PipelineMachine(core, MemoryBus(KZM.memory), chip), trace))
    assert ends[0] == ends[1]


def test_a_copied_state_shares_no_lines_of_its_second_level() -> None:
    """Before, it read the ways' last uses after the first state was gone: the process crashed."""
    latencies = MemoryLatencies(60, 26, 7, dirty_l1_victims=True, dirty_l2_victims=True)
    draws, geometry = SplitMix(1), KZM.geometries[0]
    caches = [SimulatedCache(geometry, ReplacementPolicy.LRU, draws) for _ in range(3)]
    memory = MemoryBus(latencies, l2=caches[2])
    chip = FetchAndCaches(caches[0], caches[1], 0, draws)
    machine = PipelineMachine(load_core("arm1136", CoreProfile.NOMINAL), memory, chip)
    state = exported(machine, draws)
    own = copied(state).l2.contents
    rows = [name for name, kind in type(own)._fields_ if hasattr(kind, "contents")]
    assert rows
    for name in rows:
        before = getattr(state.l2.contents, name)[0]
        getattr(own, name)[0] = before + 1
        assert getattr(state.l2.contents, name)[0] == before, name


def test_a_state_has_no_other_field() -> None:
    """A change of one that has gone would be none."""
    draws = SplitMix(1)
    caches = [SimulatedCache(KZM.geometries[0], ReplacementPolicy.LRU, draws) for _ in range(2)]
    chip = FetchAndCaches(caches[0], caches[1], 0, draws)
    core = load_core("arm1136", CoreProfile.NOMINAL)
    state = exported(PipelineMachine(core, MemoryBus(KZM.memory), chip), draws)
    for part in (state, state.dcache):
        with pytest.raises(AttributeError):
            part.replacement = 1


def test_executions_in_turn_take_the_same_cycles_as_in_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seed in range(cases(3)):
        draws = Random(seed)
        program = random_program(draws, maintenance=True, text=MIXED)
        known = Instructions(load_core("arm1136", CoreProfile.NOMINAL))
        traces = [
            CompiledTrace.of(
                known, [s for node in random_path(program, draws, 10).steps for s in node]
            )
            for _ in range(3)
        ]
        cycles = []
        for library in (native.library, lambda: None):
            monkeypatch.setattr(native, "library", library)
            cycles.append(execute_in_turn(random_machine(SplitMix(seed), 48, ENTRY), 2 * traces, 7))
        assert cycles[0] == cycles[1], f"seed {seed}"
        assert min(cycles[0]) > 7


def test_without_a_compiler_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [ExecutedInsn(at(insn, 4 * i), True, False) for i, insn in enumerate(pool(
        "add r0, r1, r2\nmul r3, r0, r1\nadd r4, r3, r3\n"))]  # fmt: skip
    trace = CompiledTrace.of(Instructions(load_core("arm1136", CoreProfile.NOMINAL)), steps)
    fast = execute(warm_machine(Random(1)), trace)
    monkeypatch.setattr(native, "library", lambda: None)
    assert execute(warm_machine(Random(1)), trace) == fast


def test_an_unknown_operation_is_named() -> None:
    step = ExecutedInsn(at(pool("mcr p15, 0, r0, c6, c0, 0\n")[0], 4), True, False)
    trace = CompiledTrace.of(Instructions(load_core("arm1136", CoreProfile.NOMINAL)), [step])
    with pytest.raises(TimingError, match="no concrete effect"):
        execute(warm_machine(Random(1)), trace)


@pytest.mark.slow("compiles the simulator, or simulates a million instructions")
def test_compiles_into_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[str] = []
    real = native._compile

    def compiled(compiler: str) -> bytes:
        made.append(compiler)
        return real(compiler)

    monkeypatch.setattr(native, "_compile", compiled)
    for _ in range(2):
        assert native.library.__wrapped__() is not None
    assert len(made) == 1
    assert [p.suffix for p in (tmp_path / "quoll").iterdir()] == [".quoll"]


@pytest.mark.slow("compiles the simulator, or simulates a million instructions")
@pytest.mark.parametrize("where", ["world-writable", "damaged", "under the old name"])
def test_a_planted_library_is_never_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A regression: any library in the cache folder under the right name was loaded, and ran."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder, mark = tmp_path / "quoll", tmp_path / "loaded"
    (tmp_path / "evil.c").write_text(
        "#include <stdio.h>\n__attribute__((constructor)) void ran(void) "
        f'{{ fclose(fopen("{mark}", "w")); }}\n'
        "long simulate(void) { return 0; } long sample(void) { return 0; }\n"
    )
    evil = str(tmp_path / "evil.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", evil, str(tmp_path / "evil.c")], check=True)
    planted = Path(evil).read_bytes()
    assert native.library.__wrapped__() is not None
    (record,) = folder.iterdir()
    if where == "world-writable":
        store = ResultsStore(folder)
        store.put(record.stem, planted)
        folder.chmod(0o777)
    elif where == "damaged":
        record.write_bytes(planted)
    else:
        text = native.SOURCE.read_bytes() + sysconfig.get_platform().encode()
        name = hashlib.sha256(text).hexdigest()[:24]
        (folder / f"simulator-{name}.so").write_bytes(planted)
    assert native.library.__wrapped__() is not None
    assert not mark.exists()
    native._load(planted)
    assert mark.exists(), "it would have run"


@pytest.mark.slow("simulates a million instructions")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
def test_a_million_instructions_in_ten_seconds(board: Board) -> None:
    random = Random(5)
    program = random_program(random, maintenance=False, text=MIXED)
    steps: list[ExecutedInsn] = []
    while len(steps) < 200_000:
        steps += [step for node in random_path(program, random, 60).steps for step in node]
    core = load_core(board.core, CoreProfile.NOMINAL)
    start = time.process_time()
    trace = CompiledTrace.of(Instructions(core), steps)
    execute(random_machine(random, 48, ENTRY, board), trace)
    assert time.process_time() - start < 10 * len(steps) / 1_000_000
    assert board is not KZM or trace.issued[-1] > len(steps)
