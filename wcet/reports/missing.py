"""What is missing for bounds of all entries: as lines to read, and as a facts file to fill in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quoll.errors import Missing, MissingKind
from quoll.image.image import Image
from quoll.printable import printable
from wcet.analysis.missing import Survey

__all__ = ["MissingFact", "questions", "suggested_facts", "to_lines"]

LONGEST_WAY = 8  # functions of a chain of calls that are named

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
    def cause(self) -> str:
        """What it is about, as it is counted."""
        return self.missing[0].kind.value

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
        key = one.fact if one.several else number
        found.setdefault(key, (entry, []))[1].append(one)
    return tuple(MissingFact(entry, tuple(several)) for entry, several in found.values())


def by_cause(asked: Sequence[MissingFact]) -> list[MissingFact]:
    """Those of one cause together."""
    order = list(MissingKind)
    return sorted(asked, key=lambda question: order.index(question.missing[0].kind))


def counted(asked: Sequence[MissingFact]) -> str:
    """How many there are, and of which causes."""
    counts = Counter(question.cause for question in asked)
    whole = f"{len(asked)} fact{'' if len(asked) == 1 else 's'}"
    return f"{whole}: {', '.join(f'{n} of {cause}' for cause, n in counts.items())}"


def called(survey: Survey, question: MissingFact) -> str:
    """The calls that lead from the entry to the first place, if it is in another function."""
    way = survey.ways.get(question.missing[0].addr, ())
    names = [place(survey.image, function) for function in way]
    if len(names) > LONGEST_WAY:
        names[LONGEST_WAY // 2 : -(LONGEST_WAY // 2)] = ["..."]
    return f"; called by {' > '.join(names)}" if len(names) > 1 else ""


def to_lines(survey: Survey) -> Iterator[str]:
    """One line for each fact that is missing, then what no fact takes away."""
    asked = by_cause(questions(survey.missing))
    yield f"missing: {counted(asked)}" if asked else "nothing is missing"
    for outside in survey.outside:
        yield f"  {outside.fact}    charged as uncached: {printable(', '.join(outside.sections))}"
    for question in asked:
        fact = question.fact(survey.image)
        yield f"  {fact}    needed by {question.entry}: {question.why}{called(survey, question)}"
    for entry, error in survey.others.items():
        yield f"  entry {entry}: {error}"


def suggested_facts(survey: Survey, name: str) -> str:
    """A facts file about the ELF ``name`` in which every missing fact is a comment."""
    lines = [HEADER.format(name=name)]
    for outside in survey.outside:
        sections = printable(", ".join(outside.sections))
        lines.append(OUTSIDE.format(sections=sections, fact=outside.fact))
    cause = ""
    asked = by_cause(questions(survey.missing))
    for question in asked:
        if question.cause != cause:
            cause = question.cause
            lines.append(f"\n# {cause}: {sum(q.cause == cause for q in asked)}\n")
        first = question.missing[0]
        where = survey.image.place(first.addr)
        why = f"{question.why}{called(survey, question)}"
        lines.append(f"\n# {where}, needed by {question.entry}\n# {why}\n")
        lines.append(f"# {question.fact(survey.image)}\n")
    return "".join(lines)


def place(image: Image, addr: int) -> str:
    """A place as a symbol and an offset, or an address."""
    found = image.symbol_at(addr)
    if found is None:
        return f"{addr:#x}"
    symbol, offset = found
    return f"{symbol.name}+{offset:#x}" if offset else symbol.name
