"""Whether a line on standard error can be overwritten, as a progress line is."""

from __future__ import annotations

import os
import sys

__all__ = ["clearing", "rewrites"]


def rewrites() -> bool:
    """Whether standard error is a terminal that can clear a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def clearing() -> str:
    """The control sequence that clears the progress line; empty if there is none."""
    return "\r\x1b[K" if rewrites() else ""
