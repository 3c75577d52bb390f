"""One thing that would lower a bound, if it were true."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Suggestion"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``line`` is what to write, into a facts file or, if ``is_option``, on the command line.

    ``saves``: cycles that the bound falls at least, by that line alone. ``condition``: when the
    line is true; ``now``: what is charged today. ``each``: cycles that one execution less saves.
    """

    line: str
    saves: int
    condition: str
    now: str
    each: int | None = None
    is_option: bool = False
