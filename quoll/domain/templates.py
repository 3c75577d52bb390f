"""What an instruction compiles to, made once for all of its form and moved to where each stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from quoll.arm.ops import Space, Var, const
from quoll.domain import evaluators as ev
from quoll.domain.abstract_state import MODE
from quoll.domain.steps import Micro

__all__ = ["LOCATIONS", "Moved", "Template"]

LOCATIONS = MODE + 1  # slots of registers and flags; then those of constants and temporaries


class _Extra(Enum):
    """What an evaluator is given beside slots, after the site."""

    NOTHING = "nothing"
    ACCESS = "access"  # the size, and what it is noted under
    SLOT = "slot"
    VALUES = "values"


class Moved(NamedTuple):
    """Where a template stands: the site before it, the number of its first new slot.

    ``access`` is what its accesses are noted under.
    """

    site: int
    first: int
    access: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Template:
    """Evaluators of one instruction that does not part; ``tail`` says what its own slots hold."""

    micros: tuple[tuple[ev.Evaluator, int, int, int, _Extra, Any], ...]
    tail: tuple[Var | None, ...]  # constants; None for temporaries

    @staticmethod
    def of(micros: Sequence[Micro], tail: Sequence[Any]) -> Template:
        """From what was compiled as the first instruction of a block."""
        constants = [None if value is None else const(value) for value in tail]
        return Template(tuple((*m[:4], *_extra(m)) for m in micros), tuple(constants))

    def at(self, place: Moved, names: Mapping[Var, Var]) -> tuple[list[Micro], list[int | None]]:
        """The evaluators at ``place``, and what their own slots hold at first."""
        slots = list(range(LOCATIONS))
        for name, var in names.items():
            if name.space is Space.REG:
                slots[name.offset] = var.offset
        slots += range(place.first, place.first + len(self.tail))
        site, _, access = place
        micros: list[Micro] = []
        for function, out, a, b, kind, value in self.micros:
            site += 1
            extra: Any = site
            if kind is _Extra.ACCESS:
                extra = site, value, access
            elif kind is _Extra.SLOT:
                extra = site, slots[value]
            elif kind is _Extra.VALUES:
                extra = site, *value
            micros.append((function, slots[out], slots[a], slots[b], extra))
        return micros, [None if v is None else names.get(v, v).offset for v in self.tail]


def _extra(micro: Micro) -> tuple[_Extra, Any]:
    function, extra = micro[0], micro[4]
    if type(extra) is int:
        return _Extra.NOTHING, None
    if function in (ev.load, ev.store):
        return _Extra.ACCESS, extra[1]
    if function is ev.subtract and extra[1]:
        return _Extra.SLOT, extra[1]
    return _Extra.VALUES, extra[1:]
