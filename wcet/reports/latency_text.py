"""The longest stretches as text for 80 columns, and the latency as the last lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from textwrap import wrap

from loopbounds.proof.bound import LoopBound, NamedCount, StatedCount
from quoll.image.image import Image
from wcet.analysis.result import AnalysisResult
from wcet.latency.longest import RankedStretch
from wcet.latency.stretch import Stretch, StretchLoop, function_of
from wcet.latency.total import latency_function, no_latency
from wcet.latency.view import LatencyView
from wcet.reports.result_text import TextStyle, heading, wide

__all__ = [
    "Beginning",
    "beginning",
    "bounded_by",
    "fact_without",
    "most_of",
    "to_lines",
    "total_lines",
]

COLUMNS = 80
LABEL = 17  # columns in front of the text of a row
LOOP_SHARE = 0.05  # of a stretch: loops below are summed up


class Beginning(Enum):
    """The kind of place where a stretch begins."""

    ENTRY = "entry"
    TEST = "test"  # that sees no interrupt
    MASK = "mask"  # an instruction that may mask interrupts


def beginning(view: LatencyView, stretch: Stretch) -> Beginning:
    """The kind of place where ``stretch`` begins."""
    if stretch.start is None:
        return Beginning.ENTRY
    return Beginning.MASK if stretch.result.name in view.masked else Beginning.TEST


def to_lines(view: LatencyView, style: TextStyle) -> Iterator[str]:
    """Every stretch, the longest first."""
    result, found = view.result, view.stretches
    yield from heading(result, style).splitlines()
    yield ""
    yield style.bold(
        f"the {len(found)} longest stretches between two points where an interrupt can be taken"
    )
    yield style.dim("each is the longest without the operations above it")
    width = wide(max((one.stretch.result.cycles for one in found), default=0), 10)
    for number, one in enumerate(found, 1):
        yield ""
        yield from _stretch(view, one, number, width, style)


def _stretch(
    view: LatencyView, one: RankedStretch, number: int, width: int, style: TextStyle
) -> Iterator[str]:
    result, stretch, image = view.result, one.stretch, view.result.image
    bound = stretch.result
    took = f"{bound.cycles:>{width},} cycles {result.microseconds(bound.cycles):>9,.1f} µs"
    function = stretch.function
    yield f"{number:>2}. {style.bold(took)}  {bound.name}{bound.for_what if function else ''}"
    if function is not None:
        yield from _row("function", str(function))
    yield from _row("begins", _begin(view, stretch))
    yield from _row("ends", _end(view, stretch))
    yield from _row("operation", _operation(result, stretch))
    yield from _row("decided", _decided(image, stretch))
    yield from _loops(image, stretch)
    yield from _row("without", without_text(image, one))


def _row(label: str, text: str) -> Iterator[str]:
    """A row with a label, in as many lines as it needs."""
    lines = wrap(text, COLUMNS - LABEL, break_long_words=False, break_on_hyphens=False)
    for line in lines:
        yield f"{label:>{LABEL - 2}}  {line}"
        label = ""


def short_place(image: Image, addr: int) -> str:
    """An address as ``resolve+0x38 resolve.h:33``, as far as symbols and lines are known."""
    found = image.symbol_at(addr)
    name = hex(addr) if found is None else found[0].name
    if found is not None and found[1]:
        name += f"+{found[1]:#x}"
    line = image.line(addr)
    return name if line is None else f"{name} {line}"


def _calls(result: AnalysisResult, functions: Sequence[int]) -> str:
    """Active functions, the entry's last."""
    return " < ".join(map(result.function, reversed(functions)))


def _begin(view: LatencyView, stretch: Stretch) -> str:
    result, start = view.result, stretch.start
    if start is None:
        return f"the entry, {short_place(result.image, stretch.result.address)}"
    how = "masked in the block" if stretch.result.name in view.masked else "behind the test"
    called = _calls(result, stretch.callers)
    return f"{how} at {short_place(result.image, start)}, in {called}"


def _end(view: LatencyView, stretch: Stretch) -> str:
    image = view.result.image
    if stretch.last is None:
        return "no path is known that takes as long"
    test = "" if stretch.test is None else f" the test at {short_place(image, stretch.test)}, then"
    unrealisable = stretch.result.path.unrealisable
    why = f" ({unrealisable})" if unrealisable else ""
    if stretch.result.name in view.masked:
        return f"unmasked, or the path, in the block to {short_place(image, stretch.last)}{why}"
    return f"{test} {short_place(image, stretch.last)}{why}".strip()


def _operation(result: AnalysisResult, stretch: Stretch) -> str:
    operation = stretch.operation
    if operation is None:
        return "not known: no counts are known that reach the bound"
    loop = operation.loop
    inside = "" if loop is None else f"loop {short_place(result.image, loop)} in "
    cycles = f"{operation.cycles:,} of {stretch.result.cycles:,} cycles"
    return f"{cycles}: {inside}{_calls(result, operation.functions)}"


def _decided(image: Image, stretch: Stretch) -> str:
    """The branch that selects the operation."""
    decided = stretch.decided
    if decided is None:
        return "nowhere: no branch avoids it"
    ways = f"one of {decided.decision.ways} ways" if decided.decision.is_switch else "a condition"
    selected = short_place(image, decided.selected.addr)
    return f"at {short_place(image, decided.branch)}, {ways}, to {selected}"


def _loops(image: Image, stretch: Stretch) -> Iterator[str]:
    loops = stretch.loops()
    shown = [loop for loop in loops if loop.cycles >= LOOP_SHARE * stretch.result.cycles]
    for number, loop in enumerate(shown):
        yield from _row("" if number else "loops", _loop(image, loop))
    rest = loops[len(shown) :]
    if rest:
        cycles = f"of less than {LOOP_SHARE:.0%} of the cycles each"
        yield from _row("" if shown else "loops", f"{len(rest)} {cycles}")
    if not loops:
        yield from _row("loops", "none")


def _loop(image: Image, loop: StretchLoop) -> str:
    entered = "" if loop.entries == 1 else f" in {loop.entries:,} entries"
    kinds = dict.fromkeys(f"at most {most_of(one)} each, {bounded_by(one)}" for one in loop.bounds)
    return (
        f"{loop.cycles:,} cycles: {short_place(image, loop.header)} {loop.iterations:,} "
        f"time{'s' * (loop.iterations != 1)}{entered} ({'; '.join(kinds)})"
    )


def most_of(bound: LoopBound) -> str:
    """The most executions of a header per entry: a number, or its parameter."""
    if isinstance(bound.evidence, NamedCount):
        return bound.evidence.most
    return f"{bound.bound:,}"


def bounded_by(bound: LoopBound) -> str:
    """The kind of evidence of a bound; a stated bound has its place."""
    if isinstance(bound.evidence, StatedCount | NamedCount):
        return f"stated at {bound.evidence.source}"
    if bound.method == "pending":
        return "by tests for interrupts"
    return "proved" if bound.assumes is None else f"proved from {bound.assumes}"


def fact_without(image: Image, one: RankedStretch) -> str | None:
    """The line of a facts file that excludes the operation."""
    if one.excluded is None:
        return None
    found = image.symbol_at(one.excluded)
    if found is None or len(image.symbols.named(found[0].name)) != 1:
        return f"{one.excluded:#x} never executes"
    symbol, offset = found
    return f"{symbol.name}{f'+{offset:#x}' if offset else ''} never executes"


def without_text(image: Image, one: RankedStretch) -> str:
    """The longest stretch that remains."""
    fact = fact_without(image, one)
    condition = f"if {fact or 'no path begins there'}"
    if one.remaining is None:
        return f"no stretch remains, {condition}"
    function = function_of(one.remaining)
    return f"{function or f'{one.remaining.cycles:,} cycles'}, {condition}"


def total_lines(
    result: AnalysisResult, together: int, at_most: int | None, style: TextStyle
) -> Iterator[str]:
    """The latency with its summands, and whether it is at most ``at_most`` cycles."""
    latency = result.latency
    if latency is None:
        yield style.bold(f"no worst interrupt latency: {no_latency(result)}")
        function = latency_function(result, together)
        if function is not None:
            yield f"  it is {function}"
        if at_most is not None:
            yield style.bold(f"at most {at_most:,} cycles: not shown")
        return
    took = f"{latency.cycles:,} cycles, {result.microseconds(latency.cycles):,.1f} µs"
    times = f"{together} × " if together > 1 else ""
    yield style.bold(f"worst interrupt latency: {took}")
    yield (
        f"  = longest stretch ({latency.longest}: {latency.longest_cycles:,}) + {times}interrupt "
        f"path ({latency.interrupt_cycles:,})"
        + (f" + controller ({latency.delay:,})" if latency.delay else "")
    )
    if at_most is not None:
        verdict = "yes" if latency.cycles <= at_most else "no"
        difference = abs(at_most - latency.cycles)
        side = "below" if latency.cycles <= at_most else "above"
        yield style.bold(f"at most {at_most:,} cycles: {verdict}, {difference:,} {side}")
