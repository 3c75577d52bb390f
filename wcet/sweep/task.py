"""A task of a sweep: a function by its name, and an argument and a result that are JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from quoll.results.versions import versions
from wcet.analysis.request_key import programs

__all__ = ["CODE", "Json", "OtherVersion", "Task", "execute", "version"]

Json: TypeAlias = Any
CODE = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")


class OtherVersion(Exception):
    """A worker has other code, libraries or solvers than the process that made the task."""


@dataclass(frozen=True, slots=True)
class Task:
    """A call of ``function`` ("module:name") with ``argument``; ``name`` is for progress.

    A waiting task of higher ``priority`` starts before one of lower.
    """

    name: str
    function: str
    argument: Json
    priority: int = 0

    def key(self, version: str) -> str:
        """The content of the task: equal keys mean equal results."""
        content = json.dumps([self.function, self.argument, version], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def version() -> str:
    """The versions of the code, libraries and solvers that compute results, as one text."""
    return hashlib.sha256(repr((versions(*CODE), programs())).encode()).hexdigest()


def execute(function: str, argument: Json, wanted: str) -> Json:
    """Call the function, in a worker. Raises OtherVersion if the worker's version is not that."""
    if version() != wanted:
        raise OtherVersion(
            "the worker has another version of this program, of its libraries or of a solver"
        )
    module, _, name = function.partition(":")
    call: Callable[[Json], Json] = getattr(import_module(module), name)
    return call(argument)
