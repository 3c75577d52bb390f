"""Functions for tasks of a sweep in tests: workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path


def double(argument: int) -> int:
    """Twice the argument."""
    return 2 * argument


def double_slowly(argument: int) -> int:
    """The same after a while, in which the worker or the scheduler may end."""
    time.sleep(0.005)
    return 2 * argument


def end_the_worker_once(argument: Mapping[str, str]) -> str:
    """End the worker unless the file of the argument exists; it is made first."""
    seen = Path(argument["seen"])
    if not seen.exists():
        seen.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def fail(argument: str) -> None:
    """Raise an error with this text."""
    raise ValueError(argument)
