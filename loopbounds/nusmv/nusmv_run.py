"""Run NuSMV on the text of a model: the only file that runs the model checker.

Each run is a child process of its own (NuSMV is not re-entrant and may run out of memory), under a
time and a memory limit. An output counts as a verdict (rule 19) only if the child exits by itself
with status 0, markers frame each query, and exactly one verdict line stands between them, which
names the property of the query. Anything else is ``InvariantVerdict.FAILED``.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from loopbounds.budgets.budget import ProcessLimits
from loopbounds.nusmv.nusmv_library import installed
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict, State
from quoll.errors import SolverError
from quoll.processes import children
from quoll.processes.children import path_of, unnamed

__all__ = ["any_solver", "check_invariants", "find_solver"]

CHILD = Path(__file__).with_name("child.py")
LIBRARY = installed()
EXECUTABLES = ("NuSMV", "nuXmv")
MISSING = "NuSMV is missing: run 'wcet setup', put NuSMV on PATH, or use --checker smt"
ALGORITHM = "een-sorensson"  # k-induction: the only one whose "is true" is used (rule 19)
PATIENCE = 10  # seconds by the clock per second of the processor: the machine may do other work
LEAST = 200  # seconds by the clock: a query of one second may wait as long for the processor


def any_solver() -> Path:
    """The NuSMV or nuXmv on PATH, else the library of the set-up, which may be missing."""
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


def check_invariants(
    text: str, queries: Sequence[InvariantQuery], limits: ProcessLimits, solver: Path
) -> tuple[InvariantResult, ...]:
    """One result per query about the model of ``text``. A failing solver raises nothing."""
    if not solver.is_file():
        return _results("", queries, InvariantVerdict.FAILED, MISSING)
    most = max(LEAST, PATIENCE * limits.seconds)
    try:
        with (
            unnamed("model", text) as model,
            unnamed("commands", _script(queries, model)) as script,
        ):
            ended = children.run(
                [
                    *(sys.executable, "-I", "-S", str(CHILD)),
                    *(str(os.getpid()), str(limits.memory), str(limits.seconds), str(solver)),
                    *("-source", path_of(script)),
                ],
                seconds=limits.seconds,
                most=most,
                files=(model, script),
                environment={**os.environ, "HOME": "/nonexistent"},  # no start-up file of the user
            )
    except OSError as error:
        reason = f"could not be started: {error.strerror}"
        return _results("", queries, InvariantVerdict.FAILED, reason)
    if ended.status is None:
        reason = f"it did nothing for {limits.seconds} s, or did not end in {most} s"
        return _results(ended.output, queries, InvariantVerdict.FAILED, reason)
    if ended.status == -signal.SIGXCPU:
        return _results(ended.output, queries, InvariantVerdict.EXPIRED, f"{limits.seconds} s")
    reason = _failure(ended.status, ended.errors)
    return _results(ended.output, queries, InvariantVerdict.FAILED, reason)


def _script(queries: Sequence[InvariantQuery], model: int) -> str:
    lines = [
        "set on_failure_script_quits",
        "set sat_solver MiniSat",
        "set default_trace_plugin 1",
        "set bdd_static_order_heuristics none",  # no BDD is built: no order is needed
        f"read_model -i {path_of(model)}",
        "flatten_hierarchy",
        "encode_variables",
        "build_boolean_model",
        "bmc_setup",
    ]
    for index, query in enumerate(queries):
        lines += [
            f"echo quoll-begin {index}",
            f"check_invar_bmc -a {ALGORITHM} -k {query.depth} -P spec_{query.name}",
            f"echo quoll-end {index}",
        ]
    return "\n".join([*lines, "quit", ""])


def _failure(status: int, errors: str) -> str:
    """The reason why a child process gave no result."""
    if status == 0:
        return "its output is not understood"
    said = " ".join(errors.split())[-200:]
    ending = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return f"{ending}: {said}" if said else ending


def _results(
    output: str, queries: Sequence[InvariantQuery], otherwise: InvariantVerdict, reason: str
) -> tuple[InvariantResult, ...]:
    """One result per query; a complete frame counts even if the child fails at a later query."""
    return tuple(
        _result(output, index, query) or InvariantResult(otherwise, reason=reason)
        for index, query in enumerate(queries)
    )


def _result(output: str, index: int, query: InvariantQuery) -> InvariantResult | None:
    frame = re.findall(rf"^quoll-begin {index} *\n(.*?)^quoll-end {index} *$", output, re.M | re.S)
    if len(frame) != 1:
        return None
    verdicts = [v for line in frame[0].splitlines() if (v := _verdict(line, query)) is not None]
    return InvariantResult(verdicts[0], _trace(frame[0])) if len(verdicts) == 1 else None


def _verdict(line: str, query: InvariantQuery) -> InvariantVerdict | None:
    words = line.split()
    if words == ["--", "invariant", query.name, "is", "true"]:
        return InvariantVerdict.TRUE
    if words == ["--", "invariant", query.name, "is", "false"]:
        return InvariantVerdict.FALSE
    if " ".join(words).startswith(f"-- cannot prove the invariant {query.name} is true or false"):
        return InvariantVerdict.UNKNOWN
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
