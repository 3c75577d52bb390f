"""Counterexamples to the preservation of an invariant: words at an entry, and their execution.

The solver gives words with which an entry ends where the invariant does not hold. As many words of
memory as possible are as in the loaded image. The concrete machine executes the entry from them:

    refuted         all of them are: the first exception after start-up may begin so
    not inductive   a word differs: an invariant about it is missing
    open            the execution does not break it, or cannot be followed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopbounds.execution.concrete import at_the_end
from loopbounds.execution.value import Undecided
from loopbounds.slicing.cell import MemoryCell
from loopbounds.slicing.stated_words import words_of
from loopbounds.terms.bit_vectors import Term
from quoll.arm.insn import PC, Insn
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.image.image import Image
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.models import nearest_model

__all__ = ["Counterexample", "counterexample", "holds_when_loaded"]

NAMED = 4  # words that are named


@dataclass(frozen=True, slots=True)
class Counterexample:
    """``why`` for people; ``refutes``: an execution from the loaded image breaks the invariant."""

    why: str
    refutes: bool = False

    def __str__(self) -> str:
        return self.why


def holds_when_loaded(invariant: LocatedInvariant, image: Image) -> bool | None:
    """Whether the predicate holds in the memory that the ELF file describes; None: not known."""
    words = {w: image.read(invariant.address(w), w.size) for w in invariant.fact.predicate.words}
    known = {w: int.from_bytes(word, "little") for w, word in words.items() if word is not None}
    if len(known) < len(words):
        return None
    return invariant.fact.predicate.holds(known.__getitem__)


def counterexample(
    basis: EntryBasis, invariant: LocatedInvariant, conditions: Sequence[Term]
) -> Counterexample:
    """The words with which the ``conditions`` hold, which say that the invariant is broken."""
    image, cells = basis.image, basis.conditions.memory_at_start(conditions)
    loaded = {s: word for s, cell in cells.items() if (word := as_loaded(image, cell)) is not None}
    found = nearest_model(conditions, loaded)
    if found is None:
        return Counterexample("it is not proved, and the solver finds no counterexample")
    model, differing = found
    others = [*differing, *(s for s in cells if s not in loaded)]
    registers = basis.conditions.registers_at_start(conditions)
    words = {cell: model[s] for s, cell in cells.items()}
    ended = breaks(basis, invariant, {r: model[s] for s, r in registers.items()}, words)
    names = basis.conditions.words(None, conditions)
    lost = [s for s in names if s not in cells and s not in registers]
    named = [f"{names[s]} is {model[s]:#x}" for s in (*others, *lost, *registers)][:NAMED]
    if ended is True and not others and holds_when_loaded(invariant, image):
        said = f" with {' and '.join(named)}" if named else ""
        return Counterexample(f"an execution from the loaded image{said} breaks it", refutes=True)
    said = f" if {' and '.join(named)}" if named else ""
    if ended is True:
        own = set(words_of(invariant, image).values())
        missing = " and ".join(names[s] for s in others if cells[s] not in own)
        without = f"without an invariant about {missing}, " if missing else ""
        return Counterexample(f"it is not inductive: {without}an execution breaks it{said}")
    hits = (f"{one.text} at {image.place(one.addr)}" for one in stores_behind(basis, lost))
    may = "; ".join(dict.fromkeys(hits))
    why = f"its words may be hit by {may}" if may else f"it may fail{said}"
    return Counterexample(f"it is not proved: {why}")


def stores_behind(basis: EntryBasis, words: Sequence[Term]) -> list[Insn]:
    """The stores that made words unknown."""
    found = map(basis.conditions.store_behind, words)
    return [one for one in found if one is not None][:NAMED]


def as_loaded(image: Image, cell: MemoryCell) -> int | None:
    content = image.read(cell.address.value, cell.size)
    return None if content is None else int.from_bytes(content, "little")


def breaks(
    basis: EntryBasis,
    invariant: LocatedInvariant,
    registers: Mapping[int, int],
    words: Mapping[MemoryCell, int],
) -> bool | None:
    """Whether an execution from these words ends where the invariant is false; None: unknown."""
    image, spans = basis.image, basis.image.loaded_in_place()
    loaded = image.starting_with(spans).changing(spans)
    start = [registers.get(register) for register in range(PC)]
    content = {(cell.address.value, cell.size): word for cell, word in words.items()}
    try:
        machine = at_the_end(basis.graph, loaded, start, content)
    except Undecided:
        return None
    found = {
        word: machine.word(invariant.address(word), word.size)
        for word in invariant.fact.predicate.words
    }
    if None in found.values():
        return None
    known = {word: value for word, value in found.items() if value is not None}
    return not invariant.fact.predicate.holds(known.__getitem__)
