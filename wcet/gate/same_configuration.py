"""Checks that two records have the same configuration: facts, platform, version (rule 52).

A slower kernel may have a lower bound under stronger facts. So records with different facts,
platform, options or version are compared only on request, and the comparison then lists the
differences. A fact is identified by its text, with source lines by their text, so that moved lines
change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from quoll.errors import UsageError
from wcet.gate.record import BaselineRecord, StatedFact

__all__ = ["differences", "refuse_different"]

SHOWN = 4  # facts listed of one record
OPTION = "--even-if-different"


def refuse_different(
    old: BaselineRecord, new: BaselineRecord, names: tuple[str, str], hint: str
) -> None:
    """Raise UsageError for records of different configurations; ``names``: the records' names."""
    found = differences(old, new)
    if found:
        raise UsageError(
            f"{names[0]} and {names[1]} have different configurations: {'; '.join(found)}",
            hint=f"{hint}; or compare anyway, with these differences listed: {OPTION}",
        )


def differences(old: BaselineRecord, new: BaselineRecord) -> tuple[str, ...]:
    """The differences besides the kernel, if both records contain them."""
    return tuple(_differences(old, new))


def _differences(old: BaselineRecord, new: BaselineRecord) -> Iterator[str]:
    if old.platform != new.platform:
        yield f"platform {old.platform}, now {new.platform}"
    if old.version and new.version and old.version != new.version:
        yield f"version {old.version} of this program, now {new.version}"
    if old.asked and new.asked:
        for name in sorted({*old.asked, *new.asked}):
            before, after = (one.asked.get(name, "unknown") for one in (old, new))
            if before != after:
                yield f"{name} {before or 'none'}, now {after or 'none'}"
        yield from _of_facts(old, new)


def _of_facts(old: BaselineRecord, new: BaselineRecord) -> Iterator[str]:
    exact = not all(one.about for record in (old, new) for one in record.stated)

    def said(fact: StatedFact) -> str:
        return fact.text if exact else fact.about

    before, after = (Counter(map(said, record.stated)) for record in (old, new))
    for left, facts, which in (
        (before - after, old.stated, "no longer stated"),
        (after - before, new.stated, "newly stated"),
    ):
        lines = [f"'{fact.text}' ({fact.source})" for fact in facts if said(fact) in left]
        more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        if lines:
            yield f"{which}: {', '.join(lines[:SHOWN])}{more}"
