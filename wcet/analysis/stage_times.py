"""Wall time and memory of each stage of a run, and progress on a terminal."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from shutil import get_terminal_size

from quoll.printable import printable
from quoll.terminal import clearing, rewrites

__all__ = ["SilentStageLog", "StageLog", "StageUse"]


@dataclass(frozen=True, slots=True)
class StageUse:
    """The resources of a stage: wall seconds, and the process's peak resident MiB when it ended."""

    seconds: float
    peak_mib: float


class StageLog:
    """Collects ``StageUse`` by stage name; repeated stages (one per entry) add up.

    With ``verbose`` each step is named on standard error while it runs: rewritten in place on a
    terminal, one line each otherwise.
    """

    def __init__(self, *, verbose: bool) -> None:
        self._use: dict[str, StageUse] = {}
        self._verbose = verbose
        self._terminal = rewrites()
        self._said = ""
        self._warned: set[str] = set()

    @contextmanager
    def stage(self, name: str, detail: str = "") -> Iterator[None]:
        """Time the body as part of stage ``name``."""
        self.say(f"{name}{': ' + detail if detail else ''}")
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spent(name, time.perf_counter() - start)

    def spent(self, name: str, seconds: float) -> None:
        """Add wall time to stage ``name``."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.add({name: StageUse(seconds, peak)})

    def add(self, used: Mapping[str, StageUse]) -> None:
        """Add the time and memory that another process used in parallel."""
        for name, more in used.items():
            before = self._use.get(name, StageUse(0.0, 0.0))
            seconds, peak = before.seconds + more.seconds, max(before.peak_mib, more.peak_mib)
            self._use[name] = StageUse(seconds, peak)

    def say(self, text: str) -> None:
        """Show the current step, once."""
        if not self._verbose or text == self._said:
            return
        self._said = text
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text[: get_terminal_size().columns - 1]}")
        else:
            sys.stderr.write(f"wcet: {text}\n")
        sys.stderr.flush()

    def warn(self, text: str) -> None:
        """Print a warning on standard error once, progress or not."""
        if text in self._warned:
            return
        self._warned.add(text)
        print(f"{clearing()}wcet: warning: {printable(text)}", file=sys.stderr)

    def done(self) -> dict[str, StageUse]:
        """Clear the progress line and return the figures in order of first use."""
        if self._verbose and self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        return dict(self._use)


class SilentStageLog(StageLog):
    """The stages of a trial run, which prints nothing."""

    def __init__(self) -> None:
        super().__init__(verbose=False)

    def warn(self, text: str) -> None:
        """Print nothing."""
