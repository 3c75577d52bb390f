#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Collect the loop bounds that stand beside the loops.

    facts.py -I DIR... SOURCE... > kernel.facts
    facts.py --loops -I DIR... SOURCE... > kernel.loops.csv

The first holds the analyser's inputs: parameters, and facts copied unchanged. The second lists
every loop with its bound, for comparison with a tool's own result.

Beside each for or while loop, on the line before it, stands

    /* bound: EXPRESSION */      or      /* bound: EXPRESSION: reason */

or, where an interrupt that is pending ends the path at a preemption point,

    /* preempted: NUMBER */

or, where nothing but the system's use bounds the loop,

    /* parameter: NAME + 1 */

or, where all turns pass a label whose executions on the whole path another fact limits,

    /* counted: LABEL */

EXPRESSION is over the numbers of limits.h and bilby/api.h.  It is the maximum
number of times that the loop's header runs per entry of the loop: one more than
the turns, since the test may come first.  A comment "fact: ..." is passed on as
it stands.  A loop that is preempted in each turn needs no number: the analyser ends
paths there.  A loop without a bound, a bound without a loop, and the loops that have
no line of their own (do, for(;;), goto) are errors.
"""

import argparse
import ast
import csv
import operator
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

DEFINE = re.compile(r"^#define\s+(\w+)\s+([^/\n]+?)\s*(?:/\*.*)?$", re.M)
BOUND = re.compile(r"/\*\s*bound:\s*([^:*]+(?:\*[^/][^:*]*)*?)\s*(?::\s*(.*?))?\s*\*/")
PREEMPTED = re.compile(r"/\*\s*preempted:\s*(\d+)\s*\*/")
PARAMETER = re.compile(r"/\*\s*parameter:\s*([a-z_]+(?: \+ \d+)?)\s*\*/")
COUNTED = re.compile(r"/\*\s*counted:\s*(\w+)\s*\*/")
COUNTED = re.compile(r"/\*\s*counted:\s*(\w+)\s*\*/")
FACT = re.compile(r"/\*\s*fact:\s*(.+?)\s*\*/")
PENDING, BY_USE, TOTAL = "preempted", "parameter", "total"  # kinds of bounds besides expressions
LOOP = re.compile(r"^\s*(?:\}\s*)?(for|while)\s*\(")
REFUSED = re.compile(r"^\s*do\s*(\{|$)|\bfor\s*\(\s*;\s*;|\bgoto\b|\bwhile\s*\(\s*(1|true)\s*\)")

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
}


class Loop(NamedTuple):
    """``bound``: a number, a parameter, or nothing: then ``why`` names the end of the path."""

    place: str
    bound: str
    why: str


class FactError(Exception):
    """A source line that breaks the rules; the message begins with its place."""


def read_limits(directories: list[Path]) -> dict[str, str]:
    limits: dict[str, str] = {}
    for directory in directories:
        for name in ("limits.h", "bilby/api.h"):
            path = directory / name
            if path.exists():
                limits.update(DEFINE.findall(path.read_text(encoding="utf-8")))
    return limits


def evaluate(text: str, limits: dict[str, str]) -> int:
    def walk(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in limits:
            return evaluate(limits[node.id], limits)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        raise FactError(f"'{ast.unparse(node)}' is not a limit")

    return walk(ast.parse(text.strip(), mode="eval").body)


def collect(path: Path, limits: dict[str, str]) -> tuple[list[str], list[Loop]]:
    """The facts and the loops of one source file."""
    facts: list[str] = []
    loops: list[Loop] = []
    pending: tuple[int, str, str] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        place = f"{path.name}:{number}"
        code = re.sub(r"/\*.*?\*/|//.*", "", line)
        if REFUSED.search(code):
            raise FactError(f"{place}: a loop of a form that has no line of its own")
        if match := FACT.search(line):
            facts.append(match[1])
        if LOOP.match(code):
            if pending is None:
                raise FactError(f"{place}: a loop without a bound")
            loops.append(bounded(place, pending, limits))
            if pending[1] == BY_USE:
                facts.append(f"loop {place} at most {loops[-1].bound}")
            pending = None
        elif pending is not None:
            raise FactError(f"{path.name}:{pending[0]}: a bound without a loop")
        if match := BOUND.search(line):
            pending = (number, match[1], match[2] or "")
        elif match := PREEMPTED.search(line):
            pending = (number, PENDING, match[1])
        elif match := PARAMETER.search(line):
            pending = (number, BY_USE, match[1])
        elif match := COUNTED.search(line):
            pending = (number, TOTAL, match[1])
    return facts, loops


def bounded(place: str, pending: tuple[int, str, str], limits: dict[str, str]) -> Loop:
    """A loop with the bound that stands beside it."""
    expression, reason = pending[1].strip(), pending[2]
    if expression == PENDING:
        return Loop(place, "", f"preempted at point {reason}")
    if expression == BY_USE:
        return Loop(place, reason, "by the system's use")
    if expression == TOTAL:
        return Loop(place, "", f"counted at {reason}")
    try:
        value = evaluate(expression, limits)
    except (FactError, SyntaxError) as error:
        raise FactError(f"{place}: {error}") from error
    return Loop(place, str(value), f"{expression}: {reason}" if reason else expression)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-I", dest="include", type=Path, action="append", default=[])
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("--loops", action="store_true", help="every loop, as CSV")
    options = parser.parse_args()
    limits = read_limits(options.include)
    try:
        found = [collect(path, limits) for path in options.sources]
    except FactError as error:
        print(f"facts.py: {error}", file=sys.stderr)
        return 1
    if options.loops:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(Loop._fields)
        writer.writerows(loop for _, loops in found for loop in loops)
        return 0
    print("# Generated from the sources: facts beyond the binary.")
    print("# loop PLACE at most N: its header runs at most N times per entry of the loop.")
    for facts, _ in found:
        for fact in facts:
            print(fact)
    return 0


if __name__ == "__main__":
    sys.exit(main())
