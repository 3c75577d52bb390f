# SPDX-License-Identifier: BSD-2-Clause
"""The finders of a fault: hand-written sequences, then random operations of increasing length.

A sequence that does not reach a fault cannot find it: until then the kernel does the same. So each
runs once without a fault, to record the reached faults.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from kernels.bilby.verification.fuzz.directed import SEQUENCES
from kernels.bilby.verification.fuzz.directed.boot import programs_that_are_refused
from kernels.bilby.verification.fuzz.host import READ, CheckFailure, Host, text_of
from kernels.bilby.verification.fuzz.mutants import first_line
from kernels.bilby.verification.fuzz.run import Run, symbols
from kernels.bilby.verification.fuzz.script import Script
from kernels.bilby.verification.spec.refinement import Mismatch

SECONDS_AN_OPERATION = 3  # of the processor; a hundred times the need of any
SECONDS_A_TRIAL = 60  # of this process; the clock would find faults where others are busy
MUTANTS_A_PROCESS = 100
VARIABLE = "BILBY_MUTANT"  # read by selection.c


class Endless(Exception):
    """Memory that a faulty kernel left kept the comparison from ending."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Something that a kernel without a fault passes.

    ``boots``: it starts the host build itself, in ways in which the judge does not.
    """

    name: str
    run: Callable[[Host, Path, str], None]
    boots: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """``how``: the message; ``where``: the trial."""

    how: str
    where: str


def sequence_trial(sequence: Callable[[Script], None]) -> Trial:
    def run(host: Host, path: Path, preset: str) -> None:
        script = Script(host, path, preset)
        sequence(script)
        if script.in_step:
            script.run.refinement.check_everything()

    return Trial(str(sequence.__name__), run, sequence is programs_that_are_refused)


def operations_trial(count: int, seed: int) -> Trial:
    def run(host: Host, path: Path, preset: str) -> None:
        Run(host, symbols(path), seed, preset).run(count, force_every=2)

    return Trial(f"{count} operations of seed {seed}", run)


BY_HAND = [sequence_trial(sequence) for sequence in SEQUENCES]


class Judge:
    """Tries the faults of one build. Raises ValueError if a trial fails without a fault."""

    def __init__(self, path: Path, preset: str, size: int) -> None:
        self.path = path
        self.preset = preset
        self.size = size
        self._table = symbols(path)
        self._host: Host | None = None
        self._tried = 0
        self._reach: dict[str, set[int]] = {}
        os.environ[VARIABLE] = "0"
        self._recordings: dict[str, list[tuple[bytes, bytes]]] = {}
        host = self.host()
        self.boot = self._reached(host, 1)

    def close(self) -> None:
        if self._host is not None:
            self._host.close()
            self._host = None

    def host(self) -> Host:
        if self._host is None:
            self._host = Host(self.path, SECONDS_AN_OPERATION)
        return self._host

    def _reached(self, host: Host, epoch: int) -> set[int]:
        place, found = self._table["mutant_reached"], set()
        _, answer = host.request(READ, place, self.size)
        for address, value in answer.changes.items():
            if value == epoch:
                found.add((address - place) // 4)
        return found

    def reach(self, trial: Trial) -> set[int]:
        """The faults that a trial reaches; boot's faults belong to every trial."""
        if trial.name not in self._reach:
            host = self.host()
            epoch = len(self._reach) + 2
            host.store(self._table["mutant_epoch"], epoch)
            host.recording = self._recordings[trial.name] = []
            try:
                trial.run(host, self.path, self.preset)
            except (CheckFailure, Mismatch) as failure:
                raise ValueError(f"{self.preset}: {trial.name}: {failure}") from failure
            finally:
                host.recording = None
            self._reach[trial.name] = self._reached(host, epoch) | self.boot
        return self._reach[trial.name]

    def find(self, number: int, trials: list[Trial]) -> Found | None:
        """The first trial that fails with this fault."""
        reaching = [trial for trial in trials if trial.boots or number in self.reach(trial)]
        boots = number in self.boot or any(trial.boots for trial in reaching)
        if boots:  # its effects are in a process of its own
            self.close()
            os.environ[VARIABLE] = str(number)
        try:
            for trial in reaching:
                failure = self._try(number, trial)
                if failure is not None:
                    return Found(describe(failure), trial.name)
            return None
        finally:
            os.environ[VARIABLE] = "0"
            self._settle(boots)

    def _try(self, number: int, trial: Trial) -> Exception | None:
        """The failure of a trial; None if every operation is answered as without a fault.

        The trial passes without the fault, and repeats exactly. So the fault causes its exceptions,
        even if the comparison fails on the memory; except resources that this machine lacks, which
        are no finding.
        """
        try:
            with time_limit():
                host = self.with_fault(number)
                if trial.boots:
                    trial.run(host, self.path, self.preset)
                    return None
                answer = host.replay(self._recordings[trial.name])
                if answer is not None and text_of(answer)[:1] not in ("", "("):
                    return CheckFailure(text_of(answer))
                if answer is not None:
                    trial.run(host, self.path, self.preset)
        except (OSError, MemoryError):
            raise
        except Exception as failure:
            return failure
        return None

    def operations(self, trial: Trial) -> list[bytes]:
        """The requests of a trial without a fault."""
        self.reach(trial)
        return [asked for asked, _ in self._recordings[trial.name]]

    def with_fault(self, number: int) -> Host:
        """The process, in the state after boot; ``close`` it afterwards."""
        host = self.host()
        host.reset()
        host.store(self._table["mutant_number"], number)
        return host

    def _settle(self, boots: bool) -> None:
        """Remove the fault; now and then, check the process for leftovers of faulty kernels."""
        host = self._host
        if host is None or not host.is_alive() or boots:
            self.close()
            return
        host.store(self._table["mutant_number"], 0)
        self._tried += 1
        if self._tried % MUTANTS_A_PROCESS == 0:
            BY_HAND[0].run(host, self.path, self.preset)
            self.close()


@contextmanager
def time_limit() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Endless(f"not done after {SECONDS_A_TRIAL} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_A_TRIAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def describe(failure: Exception) -> str:
    """Anything that goes wrong finds a fault: the kernel as it is passes the same."""
    if isinstance(failure, AssertionError):
        return first_line(failure)
    return f"{type(failure).__name__}: {failure}"
