"""Missing facts of all entries: as lines to read, and as a facts file to fill in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loopbounds.loop_lines import LoopLine
from quoll.errors import PROPOSED, MissingKind, MissingStatement
from quoll.image.image import Image
from quoll.printable import printable
from wcet.analysis.fact_survey import FactSurvey

__all__ = ["MissingFact", "missing_facts", "suggested_facts", "to_lines"]

NO_LINES: Mapping[int, LoopLine] = {}
LONGEST_WAY = 8  # functions of a call chain that are named

HEADER = f"""\
{PROPOSED}{{name}}. Replace N and PLACE, ... by true numbers and places, remove the
# '#' in front of each fact, and give the file to --facts, unless it is beside the kernel or
# wcet.toml names it.
"""
OUTSIDE = """
# The platform does not describe the memory of {sections}, so every access there is charged as
# uncached. True of cached RAM, if the MMU is off or all page tables map it alike:
# {fact}
"""


@dataclass(frozen=True, slots=True)
class MissingFact:
    """One question, with all places that it is about."""

    entry: str  # the first entry that needs it
    missing: tuple[MissingStatement, ...]

    def facts(self, image: Image, lines: Mapping[int, LoopLine] = NO_LINES) -> tuple[str, ...]:
        """The facts with their places as source lines or symbols with a checksum, or addresses.

        A fact about a loop names one place, others name all of them.
        """
        first = self.missing[0]
        places = dict.fromkeys(
            self._line(lines, m) or checked_place(image, m) for m in self.missing
        )
        named = places if first.kind is MissingKind.LOOPS else [", ".join(places)]
        return tuple(first.fact.replace("PLACE", name, 1) for name in named)

    def _line(self, lines: Mapping[int, LoopLine], missing: MissingStatement) -> str | None:
        """The source line of a missing loop, if it names no loop that may need another number."""
        line = lines.get(missing.addr) if missing.kind is MissingKind.LOOPS else None
        mine = {one.addr for one in self.missing if one.several or one is missing}
        return line.place if line is not None and line.headers <= mine else None

    @property
    def cause(self) -> str:
        """Its subject, for counting."""
        return self.missing[0].kind.value

    @property
    def why(self) -> str:
        """The reason of the first place, and the cycles per unit of the number."""
        first, more = self.missing[0], len(self.missing) - 1
        cost = "" if first.cycles is None else f"; {first.cycles:,} cycles for each"
        others = f"; and {more} more place{'s' if more > 1 else ''} like it" if more else ""
        return f"{first.why}{cost}{others}"


def missing_facts(missing: Sequence[tuple[str, MissingStatement]]) -> tuple[MissingFact, ...]:
    """The missing facts, with calls of the same proposal and copies of a loop merged into one."""
    found: dict[object, tuple[str, list[MissingStatement]]] = {}
    for number, (entry, one) in enumerate(missing):
        key = (one.fact, one.group) if one.several or one.group else number
        found.setdefault(key, (entry, []))[1].append(one)
    return tuple(MissingFact(entry, tuple(several)) for entry, several in found.values())


def by_cause(missing: Sequence[MissingFact]) -> list[MissingFact]:
    """The missing facts, sorted by cause, the largest cost of an execution first."""
    order = list(MissingKind)

    def rank(needed: MissingFact) -> tuple[int, int]:
        first = needed.missing[0]
        return order.index(first.kind), -(first.cycles or 0)

    return sorted(missing, key=rank)


def counted(missing: Sequence[MissingFact]) -> str:
    """The number of missing facts by cause, as text."""
    counts = Counter(needed.cause for needed in missing)
    whole = f"{len(missing)} fact{'' if len(missing) == 1 else 's'}"
    return f"{whole}: {', '.join(f'{n} of {cause}' for cause, n in counts.items())}"


def called(survey: FactSurvey, needed: MissingFact) -> str:
    """The calls from the entry to the first place, if it is in another function; else ""."""
    way = survey.ways.get(needed.missing[0].addr, ())
    names = [place(survey.image, function) for function in way]
    if len(names) > LONGEST_WAY:
        names[LONGEST_WAY // 2 : -(LONGEST_WAY // 2)] = ["..."]
    return f"; called by {' > '.join(names)}" if len(names) > 1 else ""


def to_lines(survey: FactSurvey) -> Iterator[str]:
    """Two lines for each missing fact, it and its reason, then errors that no fact resolves."""
    missing = by_cause(missing_facts(survey.missing))
    yield f"missing: {counted(missing)}" if missing else f"{_none(survey)} is missing"
    for outside in survey.outside:
        yield f"  {outside.fact}"
        yield f"      charged as uncached: {printable(', '.join(outside.sections))}"
    for needed in missing:
        for fact in needed.facts(survey.image, survey.lines):
            yield f"  {fact}"
        yield f"      needed by {needed.entry}: {needed.why}{called(survey, needed)}"
    for entry, error in survey.others.items():
        yield f"  entry {entry}: {error}"
    for entry in survey.unfinished:
        yield f"  entry {entry}: the time limit passed: more may be missing (--suggest-within)"


def _none(survey: FactSurvey) -> str:
    """Nothing, if all entries have a bound then."""
    if survey.others:
        return "no fact that would give every entry a bound"
    return "nothing that was found in time" if survey.unfinished else "nothing"


def suggested_facts(survey: FactSurvey, name: str) -> str:
    """A facts file about the ELF ``name`` in which every missing fact is a comment."""
    lines = [HEADER.format(name=name)]
    for outside in survey.outside:
        sections = printable(", ".join(outside.sections))
        lines.append(OUTSIDE.format(sections=sections, fact=outside.fact))
    cause = ""
    missing = by_cause(missing_facts(survey.missing))
    for needed in missing:
        if needed.cause != cause:
            cause = needed.cause
            lines.append(f"\n## {cause}: {sum(q.cause == cause for q in missing)}\n")
        first = needed.missing[0]
        where = survey.image.place(first.addr)
        why = f"{needed.why}{called(survey, needed)}"
        lines.append(f"\n# {where}, needed by {needed.entry}\n# {why}\n")
        lines += [f"# {fact}\n" for fact in needed.facts(survey.image, survey.lines)]
    return "".join(lines)


def checked_place(image: Image, missing: MissingStatement) -> str:
    """The place; inside a function with its checksum, so that an edit cannot redirect the fact."""
    from quoll.facts.anchors import anchored  # it loads the disassembler

    text = place(image, missing.addr)
    inside = "+" in text or missing.kind is MissingKind.LOOPS
    return (anchored(image, missing.addr) if inside else None) or text


def place(image: Image, addr: int) -> str:
    """A place as a symbol and an offset, or an address."""
    found = image.symbol_at(addr)
    if found is None:
        return f"{addr:#x}"
    symbol, offset = found
    return f"{symbol.name}+{offset:#x}" if offset else symbol.name
