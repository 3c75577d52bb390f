"""The command ``wcet``: checks that every package is ours, then runs the command line.

Other distributions have packages named ``cache``, too. One of them may come first on the path of
modules, or may be installed over ours; then foreign code would run.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

__all__ = ["PACKAGES", "clash", "program"]

PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
STATUS = 3  # a wrong file
CURE = "install quoll by itself: 'pipx install quoll', or a virtual environment of its own"


def program() -> NoReturn:
    """Run the command line and end this process."""
    found = clash(Path(__file__).resolve().parent.parent)
    if found is not None:
        print(f"wcet: error E113: {found} ({CURE})", file=sys.stderr)
        raise SystemExit(STATUS)
    from wcet.cli import program as run

    run()


def clash(folder: Path) -> str | None:
    """The conflict of the packages installed in ``folder``, if any."""
    for name in PACKAGES:
        spec = find_spec(name)
        there = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if there is None:
            return f"the package {name} of quoll is not in {folder}"
        if there != folder / name / "__init__.py":
            return f"{there} is found before the package {name} of quoll in {folder}"
    return _overwritten(folder)


def _overwritten(folder: Path) -> str | None:
    """The first file whose size differs from pip's list; None also for a checkout."""
    for record in folder.glob("quoll-*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            name, _, size = line.rsplit(",", 2)
            if size and name.partition("/")[0] in PACKAGES and not _has(folder / name, int(size)):
                return f"{folder / name} is gone, or not the file that quoll installed"
    return None


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
