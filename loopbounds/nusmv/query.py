"""Ask NuSMV whether invariants of a model hold: the only place that runs the model checker.

A query is one model text and a list of checks. It runs in a child process of its own (NuSMV is
not re-entrant and may run out of memory), under a time and a memory limit. What counts as an
answer is narrow (rule 19): the child ends by itself with status 0, every check is framed by its
own markers, and between the markers stands exactly one verdict line, which names the property
that was asked for. Anything else is ``CheckVerdict.FAILED``.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from loopbounds.nusmv.library import installed
from quoll.errors import SolverError
from quoll.processes import children
from quoll.processes.children import path_of, unnamed

__all__ = [
    "Check",
    "CheckAnswer",
    "CheckVerdict",
    "Limits",
    "State",
    "any_solver",
    "ask",
    "find_solver",
]

CHILD = Path(__file__).with_name("child.py")
LIBRARY = installed()
EXECUTABLES = ("NuSMV", "nuXmv")
MISSING = "NuSMV is missing: run 'wcet setup', put NuSMV on PATH, or use --checker smt"
ALGORITHM = "een-sorensson"  # k-induction: the only one whose "is true" is used (rule 19)
PATIENCE = 10  # times the processor's seconds by the clock: the machine may do other work

State = Mapping[str, int]


class CheckVerdict(Enum):
    """What NuSMV said of one invariant."""

    TRUE = "true"
    FALSE = "false"  # violated; the trace starts in an initial state
    UNKNOWN = "unknown"  # neither; the search gives a failed induction step as the trace
    EXPIRED = "out of time"  # of the processor
    FAILED = "solver failed"  # killed, crashed, stuck, out of memory, or not understood


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant and the depth of the induction.

    The model says ``DEFINE name := ...; INVARSPEC NAME spec_name := name``.
    """

    name: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may use.

    It is ended when it does nothing for these seconds, and ``PATIENCE`` times as much by the clock.
    """

    seconds: int = 20  # of processor time
    memory: int = 1 << 30  # bytes of address space


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The verdict on one check; ``trace`` lists states, inputs of a step under the new state."""

    verdict: CheckVerdict
    trace: tuple[State, ...] = field(default=())
    reason: str = ""  # of EXPIRED and FAILED


def any_solver() -> Path:
    """The NuSMV or nuXmv on PATH, else the library that set-up installs, if that is there."""
    return next((Path(found) for n in EXECUTABLES if (found := shutil.which(n))), LIBRARY)


def find_solver() -> Path:
    """The same. Raises SolverError when there is none."""
    solver = any_solver()
    if solver.is_file():
        return solver
    raise SolverError(
        "NuSMV is missing, so no loop bound can be proved",
        where=str(LIBRARY),
        hint="run 'wcet setup', put NuSMV on PATH, or prove with the SMT solver: --checker smt",
    )


def ask(
    model: str, checks: Sequence[Check], limits: Limits, solver: Path
) -> tuple[CheckAnswer, ...]:
    """One answer per check, each asked once. Never raises for what the solver does."""
    if not solver.is_file():
        return _answers("", checks, CheckVerdict.FAILED, MISSING)
    try:
        with unnamed("model", model) as text, unnamed("commands", _script(checks, text)) as script:
            ended = children.run(
                [
                    *(sys.executable, "-I", "-S", str(CHILD)),
                    *(str(os.getpid()), str(limits.memory), str(limits.seconds), str(solver)),
                    *("-source", path_of(script)),
                ],
                seconds=limits.seconds,
                most=PATIENCE * limits.seconds,
                files=(text, script),
                environment={**os.environ, "HOME": "/nonexistent"},  # no start-up file of the user
            )
    except OSError as error:
        reason = f"could not be started: {error.strerror}"
        return _answers("", checks, CheckVerdict.FAILED, reason)
    if ended.status is None:
        reason = f"it did nothing for {limits.seconds} s, or ran for {PATIENCE} times as long"
        return _answers(ended.output, checks, CheckVerdict.FAILED, reason)
    if ended.status == -signal.SIGXCPU:
        return _answers(ended.output, checks, CheckVerdict.EXPIRED, f"{limits.seconds} s")
    reason = _failure(ended.status, ended.errors)
    return _answers(ended.output, checks, CheckVerdict.FAILED, reason)


def _script(checks: Sequence[Check], model: int) -> str:
    lines = [
        "set on_failure_script_quits",
        "set sat_solver MiniSat",
        "set default_trace_plugin 1",
        "set bdd_static_order_heuristics none",  # of variables that no BDD is made of
        f"read_model -i {path_of(model)}",
        "flatten_hierarchy",
        "encode_variables",
        "build_boolean_model",
        "bmc_setup",
    ]
    for index, check in enumerate(checks):
        lines += [
            f"echo quoll-begin {index}",
            f"check_invar_bmc -a {ALGORITHM} -k {check.depth} -P spec_{check.name}",
            f"echo quoll-end {index}",
        ]
    return "\n".join([*lines, "quit", ""])


def _failure(status: int, errors: str) -> str:
    """Why a child gave no answer."""
    if status == 0:
        return "its output is not understood"
    said = " ".join(errors.split())[-200:]
    ending = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return f"{ending}: {said}" if said else ending


def _answers(
    output: str, checks: Sequence[Check], otherwise: CheckVerdict, reason: str
) -> tuple[CheckAnswer, ...]:
    """A check whose frame is complete keeps its verdict when a later one ends the child."""
    return tuple(
        _answer(output, index, check) or CheckAnswer(otherwise, reason=reason)
        for index, check in enumerate(checks)
    )


def _answer(output: str, index: int, check: Check) -> CheckAnswer | None:
    frame = re.findall(rf"^quoll-begin {index} *\n(.*?)^quoll-end {index} *$", output, re.M | re.S)
    if len(frame) != 1:
        return None
    verdicts = [v for line in frame[0].splitlines() if (v := _verdict(line, check)) is not None]
    return CheckAnswer(verdicts[0], _trace(frame[0])) if len(verdicts) == 1 else None


def _verdict(line: str, check: Check) -> CheckVerdict | None:
    words = line.split()
    if words == ["--", "invariant", check.name, "is", "true"]:
        return CheckVerdict.TRUE
    if words == ["--", "invariant", check.name, "is", "false"]:
        return CheckVerdict.FALSE
    if " ".join(words).startswith(f"-- cannot prove the invariant {check.name} is true or false"):
        return CheckVerdict.UNKNOWN
    return None


_ASSIGNMENT = re.compile(r"^  ([A-Za-z_][A-Za-z0-9_]*) = (TRUE|FALSE|0u[dhob]?\d+_[0-9a-fA-F]+)$")
_BASES = {"d": 10, "h": 16, "o": 8, "b": 2}


def _trace(frame: str) -> tuple[State, ...]:
    """The states of the trace in ``frame``, each with the inputs that led to it."""
    states: list[dict[str, int]] = []
    inputs: dict[str, int] = {}
    at: dict[str, int] | None = None
    for line in frame.splitlines():
        if line.startswith("-> State:"):
            at = dict(inputs)
            states.append(at)
            inputs = {}
        elif line.startswith("-> Input:"):
            at = inputs
        elif at is not None and (match := _ASSIGNMENT.match(line)):
            at[match[1]] = _value(match[2])
    return tuple(states)


def _value(text: str) -> int:
    if text in ("TRUE", "FALSE"):
        return int(text == "TRUE")
    prefix, digits = text.split("_")
    return int(digits, _BASES[prefix[2]])
