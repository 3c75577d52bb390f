"""Whether lines on standard error can be written again, as progress is."""

from __future__ import annotations

import os
import sys

__all__ = ["clearing", "rewrites"]


def rewrites() -> bool:
    """Whether standard error is a terminal that can clear a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def clearing() -> str:
    """What takes away the line of progress there, if there may be one."""
    return "\r\x1b[K" if rewrites() else ""
