"""A suggestion that lowers a bound if its condition is true."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Suggestion"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``line`` belongs into a facts file or, if ``is_option``, on the command line.

    ``saves``: the cycles by which that line alone lowers the bound at least. ``condition``: when
    the line is true; ``now``: the present charge. ``each``: cycles that one execution less saves.
    """

    line: str
    saves: int
    condition: str
    now: str
    each: int | None = None
    is_option: bool = False

    @property
    def statements(self) -> int:
        """The lines that the user has to know to be true."""
        return self.line.count("\n") + 1
