"""The SMT solver bitwuzla, in this process: the only file that imports it.

It runs in one thread from a fixed seed, so that a check of the same formulas always has the same
result. Calls of its termination callback limit a check, and their number is the same on any
machine; so do processor time and memory. The library is loaded on demand, as most runs need no
proof.
"""

from __future__ import annotations

import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import FrameType
from typing import Any

from loopbounds.budgets.budget import StepLimits

__all__ = ["PACKAGE", "Formula", "SearchFailed", "SmtOutcome", "SmtResult", "SmtSolver"]

PACKAGE = "bitwuzla"

Formula = Any  # a term of bitwuzla, which carries no types
PAGE = resource.getpagesize()
MIB = 1 << 20
HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU)
CLOCK = 64  # steps between looks at the clock


class SearchFailed(Exception):
    """The library gave no result."""


class SmtResult(Enum):
    """The status of a check."""

    SAT = "sat"
    UNSAT = "unsat"
    STOPPED = "stopped"  # a limit was reached


@dataclass(frozen=True, slots=True)
class SmtOutcome:
    """The result of a check; ``value``: a formula's value in the model found, only after SAT."""

    result: SmtResult
    value: Callable[[Formula], int]


@cache
def _library() -> Any:
    import bitwuzla

    return bitwuzla


class SmtSolver:
    """Makes formulas and checks whether they are satisfiable. Booleans are not words here.

    ``plain``: check with the library's default settings instead of the faster ones of the search.
    ``steps``: the steps of all checks so far.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._terms, self._plain = _library().TermManager(), plain
        self.steps = 0

    def value(self, value: int, width: int) -> Formula:
        """A word."""
        return self._terms.mk_bv_value(self._terms.mk_bv_sort(width), value)

    def boolean(self, value: int) -> Formula:
        """A Boolean of 1 or 0."""
        return self._terms.mk_true() if value else self._terms.mk_false()

    def symbol(self, name: str, width: int) -> Formula:
        """A new symbol: a Boolean if it is one bit wide."""
        of_words = self._terms.mk_bv_sort
        return self._terms.mk_const(
            of_words(width) if width > 1 else self._terms.mk_bool_sort(), name
        )

    def apply(self, kind: str, *parts: Formula, indices: Sequence[int] = ()) -> Formula:
        """An operator, by its name in bitwuzla, on ``parts`` of fitting types."""
        return self._terms.mk_term(getattr(_library().Kind, kind), list(parts), list(indices))

    def check(self, formulas: Sequence[Formula], limits: StepLimits) -> SmtOutcome:
        """Whether ``formulas`` are satisfiable together. Raises SearchFailed."""
        library = _library()
        checker = self._checker(formulas, limits.memory)
        try:
            with _signals_held() as arrived:
                limit = _Limit(limits, arrived)
                checker.configure_terminator(limit)
                found = checker.check_sat()
        except (library.BitwuzlaException, MemoryError) as fault:
            raise SearchFailed(f"the search failed: {fault}") from fault
        self.steps += limit.steps
        if found == library.Result.UNSAT:
            result = SmtResult.UNSAT
        else:
            result = SmtResult.SAT if found == library.Result.SAT else SmtResult.STOPPED

        def value(formula: Formula) -> int:
            return int(checker.get_value(formula).value(10))

        return SmtOutcome(result, value)

    def text(self, formulas: Sequence[Formula]) -> str:
        """A check as SMT-LIB."""
        return str(self._checker(formulas, 0).print_formula())

    def _checker(self, formulas: Sequence[Formula], memory: int) -> Any:
        library = _library()
        options = library.Options()
        options.set(library.Option.PRODUCE_MODELS, True)
        if not self._plain:
            options.set(library.Option.PP_NORMALIZE, False)  # costs more than it saves
        options.set(library.Option.MEMORY_LIMIT, (_resident() + memory) // MIB)
        checker = library.Bitwuzla(self._terms, options)
        for formula in formulas:
            checker.assert_formula(formula)
        return checker


class _Limit:
    """The termination callback: True stops the check."""

    def __init__(self, limits: StepLimits, arrived: Sequence[int]) -> None:
        self._most, self._end = limits.steps, time.process_time() + limits.seconds
        self._arrived = arrived
        self.steps = 0

    def __call__(self) -> bool:
        self.steps += 1
        late = self.steps % CLOCK == 0 and time.process_time() > self._end
        return late or self.steps > self._most or bool(self._arrived)


@contextmanager
def _signals_held() -> Iterator[Sequence[int]]:
    """Collects signals, whose handlers are called at the end.

    An exception of a handler in the termination callback would be lost in the library.
    """
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    ours = threading.current_thread() is threading.main_thread()
    before = {n: h for n in HELD if ours and callable(h := signal.getsignal(n))}
    for number in before:
        signal.signal(number, note)
    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for caught in arrived:
            signal.raise_signal(caught)


def _resident() -> int:
    """The resident memory of this process in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * PAGE
