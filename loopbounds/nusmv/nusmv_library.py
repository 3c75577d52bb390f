"""The place of NuSMV's library: the environment of a checkout, or the user's data folder."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["installed", "of_user"]

NAME = Path("nusmv", "libdependencies.so")


def installed() -> Path:
    """The library of ``make setup``, else of ``wcet setup``. It need not exist."""
    here = Path(sys.prefix, "lib") / NAME
    user = of_user()
    return here if user is None or here.is_file() or not user.is_file() else user


def of_user() -> Path | None:
    """In ``quoll`` in the user's data folder (XDG base directories); None without such a folder."""
    base = os.environ.get("XDG_DATA_HOME")
    if base and os.path.isabs(base):
        return Path(base, "quoll") / NAME
    with suppress(RuntimeError):
        home = Path.home()
        if os.environ.get("HOME") != "" and home.is_absolute():
            return Path(home, ".local", "share", "quoll") / NAME
    return None
