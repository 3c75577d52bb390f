"""What is missing for bounds of all entries: as lines to read, and as a facts file to fill in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quoll.errors import Missing
from quoll.image.image import Image
from quoll.printable import printable
from wcet.analysis.missing import Survey

__all__ = ["MissingFact", "questions", "suggested_facts", "to_lines"]

GROUPED = "calls at PLACE "

HEADER = """\
# What has to be stated about {name}. Put numbers and places that hold in the place of N and
# PLACE, ..., remove the '#' in front of each fact, and hand the file to --facts, unless it is
# beside the kernel or wcet.toml names it.
"""
OUTSIDE = """
# The platform says nothing of the memory of {sections}, so every access there is charged as
# uncached. True of cached RAM, if the MMU is off or all page tables map it alike:
# {fact}
"""


@dataclass(frozen=True, slots=True)
class MissingFact:
    """One fact that is missing, for all places that it would answer at once."""

    entry: str  # the first that needs it
    missing: tuple[Missing, ...]

    def fact(self, image: Image) -> str:
        """The fact with its places as symbols, which a rebuild keeps, or addresses."""
        places = dict.fromkeys(place(image, m.addr) for m in self.missing)
        return self.missing[0].fact.replace("PLACE", ", ".join(places), 1)

    @property
    def why(self) -> str:
        """The reason of the first place, and what each unit of the number costs."""
        first, more = self.missing[0], len(self.missing) - 1
        cost = "" if first.cycles is None else f"; {first.cycles:,} cycles for each"
        others = f"; and {more} more place{'s' if more > 1 else ''} like it" if more else ""
        return f"{first.why}{cost}{others}"


def questions(missing: Sequence[tuple[str, Missing]]) -> tuple[MissingFact, ...]:
    """Calls of which the same is proposed are one question; any other fact is one."""
    found: dict[object, tuple[str, list[Missing]]] = {}
    for number, (entry, one) in enumerate(missing):
        key = one.fact if one.fact.startswith(GROUPED) else number
        found.setdefault(key, (entry, []))[1].append(one)
    return tuple(MissingFact(entry, tuple(several)) for entry, several in found.values())


def to_lines(survey: Survey) -> Iterator[str]:
    """One line for each fact that is missing, then what no fact takes away."""
    asked = questions(survey.missing)
    count = len(asked)
    yield f"missing: {count} fact{'' if count == 1 else 's'}" if count else "nothing is missing"
    for outside in survey.outside:
        yield f"  {outside.fact}    charged as uncached: {printable(', '.join(outside.sections))}"
    for question in asked:
        fact = question.fact(survey.image)
        yield f"  {fact}    needed by {question.entry}: {question.why}"
    for entry, error in survey.others.items():
        yield f"  entry {entry}: {error}"


def suggested_facts(survey: Survey, name: str) -> str:
    """A facts file about the ELF ``name`` in which every missing fact is a comment."""
    lines = [HEADER.format(name=name)]
    for outside in survey.outside:
        sections = printable(", ".join(outside.sections))
        lines.append(OUTSIDE.format(sections=sections, fact=outside.fact))
    for question in questions(survey.missing):
        first = question.missing[0]
        where = survey.image.place(first.addr)
        lines.append(f"\n# {where}, needed by {question.entry}\n# {question.why}\n")
        lines.append(f"# {question.fact(survey.image)}\n")
    return "".join(lines)


def place(image: Image, addr: int) -> str:
    """A place as a symbol and an offset, or an address."""
    found = image.symbol_at(addr)
    if found is None:
        return f"{addr:#x}"
    symbol, offset = found
    return f"{symbol.name}+{offset:#x}" if offset else symbol.name
