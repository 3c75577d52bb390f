# SPDX-License-Identifier: BSD-2-Clause
"""Sequences of operations on the host builds: each begins after boot, in a process that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from kernels.bilby.verification.fuzz.host import Host, program, running
from kernels.bilby.verification.fuzz.script import Script

__all__ = ["Scripts", "scripts"]

Scripts = Callable[[str], Script]


@contextmanager
def scripts() -> Iterator[Scripts]:
    """A script for the host build of a preset: one process for all of them.

    A new one where a sequence has ended it, or left it in the middle of an operation.
    """
    hosts: dict[str, Host] = {}
    built = cache(program)
    with ExitStack() as all_running:

        def script_of(preset: str) -> Script:
            path = built(preset)
            if preset not in hosts or not hosts[preset].is_alive():
                hosts[preset] = all_running.enter_context(running(path))
            return Script(hosts[preset], path, preset)

        yield script_of
