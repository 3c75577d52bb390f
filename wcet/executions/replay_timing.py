"""One replay instruction by instruction: when each issued, and what kept it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.simulator import Executed, PipelineMachine
from wcet.executions.replay import taking_the_exception

__all__ = ["Moment", "moments"]


@dataclass(frozen=True, slots=True)
class Moment:
    """An executed instruction: the clock before it, the cycles until the next may issue, and what
    happened: lines that missed (fetched ahead or not), loads that missed, words stored past the
    cache; ``memory`` is for how long the bus is busy beyond the clock."""

    addr: int
    text: str
    at: int
    cycles: int
    fetch_misses: int
    load_misses: int
    stored_words: int
    memory: int

    @property
    def reasons(self) -> str:
        """In words, "" if nothing but issue and operands took time."""
        parts = (
            (self.fetch_misses, "I-miss"),
            (self.load_misses, "D-miss"),
            (self.stored_words, "word stored past the cache"),
        )
        texts = [name if n == 1 else f"{n} × {name}" for n, name in parts if n]
        if texts and self.memory:
            texts.append(f"memory busy for {self.memory}")
        return "; ".join(texts)


def moments(
    machine: PipelineMachine, steps: Sequence[Executed], *, exception: bool
) -> Iterator[Moment]:
    """Execute ``steps`` on the Python machine. ``machine`` is in its initial state, and used up."""
    if exception:
        machine.clock = taking_the_exception(machine.core)
    machine.start(steps[0].insn.addr)
    for position, step in enumerate(steps, 1):
        before = _counts(machine)
        at = machine.clock
        machine.execute(step)
        after = _counts(machine)
        if step.taken and position < len(steps):
            machine.start(steps[position].insn.addr)
        fetches, loads, words = (now - then for now, then in zip(after, before, strict=True))
        yield Moment(
            addr=step.insn.addr,
            text=step.insn.text,
            at=at,
            cycles=machine.clock - at,
            fetch_misses=fetches,
            load_misses=loads,
            stored_words=words,
            memory=max(0, machine.memory.free - machine.clock),
        )


def _counts(machine: PipelineMachine) -> tuple[int, int, int]:
    return machine.chip.fetch.misses, machine.load_misses, machine.stored_words
