"""SMT solvers on the checks that bound a kernel's loops: ``python -m bench.searchers KERNEL.ELF``.

All checks of the search are recorded as SMT-LIB text while the loops of the ELF's entries are
bounded, in one process, without a cache. Then each installed solver reads and solves all of them:
bitwuzla, z3 (z3-solver) and cvc5 with default settings, and bitwuzla with the settings of the
search. Prints a table for docs/results/performance.md: seconds of processor time to import, to read
and to solve, and for the slowest check. If solvers disagree, it fails.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from loopbounds.budgets.budget import StepLimits
from loopbounds.proof.options import BoundOptions
from loopbounds.smt.solver import SmtOutcome, SmtResult, SmtSolver
from quoll.processes.children import apart
from wcet import cli

__all__ = ["main", "recorded"]

ANSWERS = {SmtResult.SAT: "sat", SmtResult.UNSAT: "unsat"}
Check = tuple[str, str]  # SMT-LIB, and the result
Asked = Callable[[str], tuple[float, str]]  # seconds to solve, and the result


def recorded(elf: Path) -> list[Check]:
    """All checks of the search for the bounds of an ELF's loops."""
    found: list[Check] = []
    real = SmtSolver.check

    def check(self: SmtSolver, formulas: Sequence[object], effort: StepLimits) -> SmtOutcome:
        answer = real(self, formulas, effort)
        if answer.result in ANSWERS:
            text = self.text(formulas).replace("@def", "def")  # a reserved name to cvc5
            found.append((text, ANSWERS[answer.result]))
        return answer

    def here(**given: Any) -> BoundOptions:
        return replace(BoundOptions(**given), workers=0)

    with (
        patch.object(SmtSolver, "check", check),
        patch("wcet.request.BoundOptions", here),
        redirect_stdout(StringIO()),
    ):
        cli.main(["loops", str(elf), "--no-cache", "--quiet"])
    return found


def bitwuzla(library: Any, *, plain: bool) -> Asked:
    """Bitwuzla with default settings if ``plain``, or with the settings of the search."""

    def ask(text: str) -> tuple[float, str]:
        options = library.Options()
        options.set(library.Option.PRODUCE_MODELS, True)
        options.set(library.Option.PP_NORMALIZE, plain)
        parser = library.Parser(library.TermManager(), options)
        parser.parse(text.replace("(check-sat)\n", ""), True, False)
        start = time.process_time()
        found = parser.bitwuzla().check_sat()
        return time.process_time() - start, found.name.lower()

    return ask


def z3(library: Any) -> Asked:
    """Z3 for bit vectors without quantifiers."""

    def ask(text: str) -> tuple[float, str]:
        solver = library.SolverFor("QF_BV", library.Context())
        solver.from_string(text)
        start = time.process_time()
        found = solver.check()
        return time.process_time() - start, str(found)

    return ask


def cvc5(library: Any) -> Asked:
    """Cvc5, which produces models."""

    def ask(text: str) -> tuple[float, str]:
        solver = library.Solver(library.TermManager())
        solver.setOption("produce-models", "true")
        parser = library.InputParser(solver)
        parser.setStringInput(library.InputLanguage.SMT_LIB_2_6, text, "check")
        manager = parser.getSymbolManager()
        command = parser.nextCommand()
        while not command.isNull() and command.getCommandName() != "check-sat":
            command.invoke(solver, manager)
            command = parser.nextCommand()
        start = time.process_time()
        found = solver.checkSat()
        return time.process_time() - start, str(found)

    return ask


SOLVERS: dict[str, tuple[str, Callable[[Any], Asked]]] = {
    "bitwuzla, as the search uses it": ("bitwuzla", lambda b: bitwuzla(b, plain=False)),
    "bitwuzla": ("bitwuzla", lambda b: bitwuzla(b, plain=True)),
    "z3": ("z3", z3),
    "cvc5": ("cvc5", cvc5),
}


def import_seconds(package: str) -> float:
    """Processor seconds to import a package, in a process of its own."""
    said = f"import time; start = time.process_time(); import {package}"
    command = [sys.executable, "-c", f"{said}; print(time.process_time() - start)"]
    return float(subprocess.check_output(command))


def row(name: str, checks: Sequence[Check]) -> str:
    """The row of one solver, measured in a process of its own."""
    package, make = SOLVERS[name]
    imported = import_seconds(package)
    ask = make(importlib.import_module(package))
    start, answers = time.process_time(), []
    for text, wanted in checks:
        seconds, found = ask(text)
        if found != wanted:
            raise AssertionError(f"{name} says {found}, not {wanted}:\n{text}")
        answers.append(seconds)
    reading = time.process_time() - start - sum(answers)
    return f"| {name} | {imported:.3f} | {reading:.2f} | {sum(answers):.2f} | {max(answers):.3f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("elf", type=Path)
    checks = recorded(parser.parse_args().elf)
    print(f"| {len(checks)} checks | import | read | answer | slowest |\n|---|---:|---:|---:|---:|")
    for name, (package, _) in SOLVERS.items():
        if importlib.util.find_spec(package) is not None:
            print(apart(partial(row, name, checks), None), flush=True)


if __name__ == "__main__":
    main()
