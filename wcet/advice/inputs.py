"""Levers on what is known of the machine and of memory. The whole entry is analysed again.

What a line says of memory is tried as a fact; what the platform leaves open, as an option.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from quoll.errors import WcetError
from quoll.facts import Facts, UnknownPointsInto
from quoll.facts.read import load
from quoll.inlining.vivu import Vivu
from wcet.advice.lever import Lever
from wcet.analysis.analyse import analyse
from wcet.analysis.options import Options
from wcet.analysis.result import EntryResult, Result
from wcet.analysis.run import facts_files
from wcet.analysis.stages import Silent

__all__ = ["of_inputs"]

PAGE = 4096  # bytes
DATA = "advised_data"


@dataclass(frozen=True, slots=True)
class _Trial:
    """Lines of facts or an option, the options with them, and when they are true."""

    line: str
    options: Options
    facts: str
    condition: str
    now: str


def of_inputs(
    result: Result, entry: EntryResult, options: Options, progress: Callable[[str], None]
) -> Iterator[Lever]:
    """Each lever that lowers the bound; what cannot be analysed is none."""
    for trial in _trials(result, options):
        progress(trial.line.partition("\n")[0])
        with tempfile.TemporaryDirectory(prefix="wcet-advise-") as folder:
            asked = replace(trial.options, entries=options.entries)
            if trial.facts:
                file = Path(folder, "advised.facts")
                file.write_text(trial.facts)
                asked = replace(asked, facts=(*asked.facts, file))
            try:
                found = analyse(result.kernel, asked, Silent())
            except WcetError:
                continue
        other = found.entries.get(entry.name)
        if other is not None and not other.parametric:
            saves = entry.cycles - other.cycles
            yield Lever(trial.line, saves, trial.condition, trial.now)


def _trials(result: Result, options: Options) -> Iterator[_Trial]:
    facts = load(facts_files(result.kernel, options))
    yield from _of_memory(result, options, facts)
    platform = result.platform
    if not options.vivu.unroll:
        yield _Trial(
            "--unroll",
            replace(options, vivu=Vivu(options.vivu.call_string, True)),
            "",
            "always: a finer analysis of the same program",
            "the first iteration of a loop is charged as all others are",
        )
    if options.vivu.call_string is not None:
        yield _Trial(
            "(leave out --call-string)",
            replace(options, vivu=Vivu(None, options.vivu.unroll)),
            "",
            "always: a finer analysis of the same program",
            f"calls with the same last {options.vivu.call_string} call sites are analysed together",
        )
    if platform.hierarchy.l2 is None and platform.l2 is not None:
        yield _Trial(
            "--l2 on",
            replace(options, l2=True),
            "",
            "the kernel runs with the level-2 cache enabled",
            "the level-2 cache is taken to be disabled",
        )
    if platform.timing.tlb is not None:
        yield _Trial(
            "--tlb assumed-resident",
            replace(options, tlb="assumed-resident"),
            "",
            "every translation of the kernel is locked in the TLB",
            "a table walk is charged for each access to another page than the one before",
        )


def _of_memory(result: Result, options: Options, facts: Facts) -> Iterator[_Trial]:
    """Where accesses of unknown address go: the writable sections, unless facts say it."""
    sections = [s for s in result.image.sections if s.writable and s.size]
    if facts.of(UnknownPointsInto) or not sections:
        return
    low = min(s.addr for s in sections) // PAGE * PAGE
    high = -(-max(s.addr + s.size for s in sections) // PAGE) * PAGE - 1
    lines = (
        f"region {DATA} from {low:#x} to {high:#x} is cached",
        f"accesses of unknown address point into {DATA}",
    )
    yield _Trial(
        "\n".join(lines),
        options,
        "".join(f"{line}\n" for line in lines),
        "data of the kernel is there and nowhere else, and it is cached; name the end of RAM "
        "instead of the last section if objects lie behind it",
        "an access whose address is not known may go anywhere, uncached memory included",
    )
