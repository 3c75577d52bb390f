"""What is missing for bounds of all entries: as lines to read, and as a facts file to fill in."""

from __future__ import annotations

from collections.abc import Iterator

from quoll.errors import Missing
from quoll.image.image import Image
from quoll.printable import printable
from wcet.analysis.missing import Survey

__all__ = ["suggested_facts", "to_lines"]

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


def to_lines(survey: Survey) -> Iterator[str]:
    """One line for each fact that is missing, then what no fact takes away."""
    count = len(survey.missing)
    yield f"missing: {count} fact{'' if count == 1 else 's'}" if count else "nothing is missing"
    for outside in survey.outside:
        yield f"  {outside.fact}    charged as uncached: {printable(', '.join(outside.sections))}"
    for entry, missing in survey.missing:
        yield f"  {fact(survey.image, missing)}    needed by {entry}: {why(missing)}"
    for entry, error in survey.others.items():
        yield f"  entry {entry}: {error}"


def suggested_facts(survey: Survey, name: str) -> str:
    """A facts file about the ELF ``name`` in which every missing fact is a comment."""
    lines = [HEADER.format(name=name)]
    for outside in survey.outside:
        sections = printable(", ".join(outside.sections))
        lines.append(OUTSIDE.format(sections=sections, fact=outside.fact))
    for entry, missing in survey.missing:
        where = survey.image.place(missing.addr)
        lines.append(f"\n# {where}, needed by {entry}\n# {why(missing)}\n")
        lines.append(f"# {fact(survey.image, missing)}\n")
    return "".join(lines)


def fact(image: Image, missing: Missing) -> str:
    """The fact with its place as a symbol, which a rebuild keeps, or an address."""
    found = image.symbol_at(missing.addr)
    place = f"{missing.addr:#x}"
    if found is not None:
        symbol, offset = found
        place = f"{symbol.name}+{offset:#x}" if offset else symbol.name
    return missing.fact.replace("PLACE", place, 1)


def why(missing: Missing) -> str:
    """The reason, and what each unit of the number costs."""
    cost = "" if missing.cycles is None else f"; {missing.cycles:,} cycles for each"
    return f"{missing.why}{cost}"
