"""The proof that an assumed fact lacks, as a statement for people and as SMT-LIB 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quoll.facts.fact import Fact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from wcet.proving.verdict import JudgedFact

__all__ = ["obligations", "statement"]

CHECK = (
    "; The conditions to get to the place, as far as they have words in common. To be proved:\n"
    "; they are unsatisfiable, with assertions about the words that are known from elsewhere.\n"
)


def obligations(
    judged: JudgedFact, number: int, facts: LocatedFacts, image: Image
) -> Iterator[tuple[Path, str]]:
    """The files of an assumed fact: a name, and its text."""
    stem = f"{number:03}"
    lines = [statement(judged.fact, facts, image), "", f"open: {judged.why}"]
    names = [f"{stem}.{n}.smt2" for n in range(1, len(judged.formulas) + 1)]
    if judged.needs:
        lines.append(f"a proof needs {judged.needs}")
    if names:
        which = "one of these" if len(names) > 1 else "this"
        lines.append(f"this place is excluded if {which} is unsatisfiable: {', '.join(names)}")
    yield Path(f"{stem}.txt"), "\n".join(lines) + "\n"
    for name, formula in zip(names, judged.formulas, strict=True):
        yield Path(name), f"; {judged.fact}\n{CHECK}{formula}"


def statement(fact: Fact, facts: LocatedFacts, image: Image) -> str:
    """The fact, with the source line of each place that it names."""
    named = dict.fromkeys(fact.names())
    places = [f"  {text}: {where(facts, fact, text, image)}" for text in named]
    return "\n".join((f"{fact.source}: {fact}", *places))


def where(facts: LocatedFacts, fact: Fact, text: str, image: Image) -> str:
    """The first addresses of a place, with their source lines."""
    return ", ".join(map(image.place, facts.at(fact, text).addresses[:2]))
