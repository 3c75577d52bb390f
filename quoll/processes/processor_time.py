"""Processor time of this process, and of a process with all its descendants.

Source: Linux manual pages times(2) and proc_pid_stat(5).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

__all__ = ["of_tree", "own"]

TIMES = slice(11, 15)  # of the fields behind the name: own user and system, then of ended children
PARENT = 1


def own() -> float:
    """Processor time of this process and of its ended children, in seconds."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def of_tree(root: int, left_out: int = 0) -> float | None:
    """Processor time of a process and its descendants, running and ended, in seconds.

    ``left_out``: a child without its own descendants. None where the system tells no such times.
    Each parent is read before its children: a child that ends in between counts at most once.
    """
    children = _children()
    waiting, ticks, known = [root], 0, False
    for process in waiting:
        waiting += [child for child in children.get(process, ()) if child != left_out]
        if (fields := _fields(process)) is not None:
            ticks += sum(map(int, fields[TIMES]))
            known = True
    return ticks / os.sysconf("SC_CLK_TCK") if known else None


def _children() -> Mapping[int, list[int]]:
    """The running processes by their parent."""
    children: dict[int, list[int]] = {}
    for process in _running():
        if (fields := _fields(process)) is not None:
            children.setdefault(int(fields[PARENT]), []).append(process)
    return children


def _running() -> Iterator[int]:
    with suppress(OSError), os.scandir("/proc") as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdigit())


def _fields(process: int) -> list[str] | None:
    """The fields of a process's state behind its name, which may hold spaces; None without it."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return None
