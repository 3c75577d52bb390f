# SPDX-License-Identifier: BSD-2-Clause
"""Each loop of the kernel has a bound beside it, in the source and in the binary."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path

import pytest

from quoll.facts.read import load
from tests.testing.bilby.build import BILBY, CROSS, output, symbols
from tests.testing.bilby.listing import Function, branches
from tests.testing.harness import build as products

FACTS = BILBY / "tools" / "facts.py"
WITHOUT_FACTS = [("kzm", "after"), ("kzm", "latency"), ("cubieboard", "after")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("for (i = 0; i < 3; i++)\n", "x.c:1: a loop without a bound"),
        ("/* bound: 3 */\nx = 1;\n", "x.c:1: a bound without a loop"),
        ("/* bound: NO_SUCH_LIMIT */\nfor (;x;)\n", "x.c:2"),
        ("do {\n", "x.c:1"),
        ("for (;;)\n", "x.c:1"),
        ("while (1)\n", "x.c:1"),
        ("goto out;\n", "x.c:1"),
    ],
)
def test_facts_refuse_a_loop_without_a_bound(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "x.c"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["python3", str(FACTS), "-I", str(BILBY / "include"), str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert message in done.stderr


def test_every_source_loop_is_annotated() -> None:
    sources = sorted((BILBY / "src").glob("*.c")) + sorted((BILBY / "include").glob("*.h"))
    text = output("python3", FACTS, "--loops", "-I", BILBY / "include", *sources)
    loops = sum(
        len(re.findall(r"^\s*(?:for|while) \(", path.read_text(encoding="utf-8"), re.M))
        for path in sources
    )
    assert len(places(text)) == loops > 10


def places(table: str) -> list[tuple[str, int]]:
    """File and line of each loop of a table."""
    rows = [row["place"].split(":") for row in csv.DictReader(table.splitlines())]
    return [(name, int(line)) for name, line in rows]


@pytest.mark.parametrize(("board", "preset"), WITHOUT_FACTS)
def test_no_fact_is_needed(board: str, preset: str) -> None:
    """Bounds that the analyser proves are none of its assumptions."""
    kernel = products.kernel(f"{board}-{preset}", "kernel.facts")
    assert load([kernel.with_name("kernel.facts")]).facts == ()


NO_RETURN = ("preempt", "leave_to_interrupt", "kernel_panic")


def successors(function: Function) -> dict[int, set[int]]:
    """Control flow inside one function, calls stepped over."""
    inside = {insn.address for insn in function.insns}
    target_of = {insn.address: target for insn, target, _ in branches(function)}
    graph: dict[int, set[int]] = {}
    for position, insn in enumerate(function.insns):
        m = insn.mnemonic
        call = re.fullmatch(r"blx?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)?", m) \
            and m not in ("bls", "blt", "ble")  # fmt: skip
        out = graph.setdefault(insn.address, set())
        ends = m in ("b", "bx", "pop", "movs") and (m != "pop" or "pc" in insn.operands)
        if call and any(f"<{name}>" in insn.operands for name in NO_RETURN):
            continue
        if not ends or call:
            out.add(insn.address + 4)
        if insn.address in target_of and not call:
            out.add(target_of[insn.address])
        if m == "addls" and insn.operands.startswith("pc, pc"):
            for entry in function.insns[position + 1 :]:  # a table of branches
                if entry.mnemonic != "b":
                    break
                out.add(entry.address)
        if m == "ldrls" and re.match(r"pc, \[pc, \w+, lsl #2\]", insn.operands):
            at = insn.address + 8  # a table of addresses, after the branch to the default
            assert function.data.get(at) in inside, f"no table at {at:#x}"
            while function.data.get(at) in inside:
                out.add(function.data[at])
                at += 4
        out &= inside
    return graph


def components(graph: dict[int, set[int]], nodes: set[int]) -> list[set[int]]:
    """Strongly connected components with a cycle (Kosaraju, without recursion)."""
    order: list[int] = []
    seen: set[int] = set()
    for root in sorted(nodes):
        stack = [(root, iter(graph[root] & nodes))] if root not in seen else []
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(graph[target] & nodes)))
                    break
            else:
                order.append(node)
                stack.pop()
    before: dict[int, set[int]] = {node: set() for node in nodes}
    for node in nodes:
        for target in graph[node] & nodes:
            before[target].add(node)
    found, done = [], set()
    for root in reversed(order):
        if root in done:
            continue
        component, work = set(), [root]
        done.add(root)
        while work:
            node = work.pop()
            component.add(node)
            for source in before[node] - done:
                done.add(source)
                work.append(source)
        if len(component) > 1 or root in graph[root]:
            found.append(component)
    return found


def binary_loops(function: Function) -> list[set[int]]:
    """Natural loops, outermost first: components, then again without their headers."""
    graph = successors(function)
    loops: list[set[int]] = []
    work = [set(graph)]
    while work:
        nodes = work.pop()
        for component in components(graph, nodes):
            loops.append(component)
            headers = {n for n in component for s in set(graph) - component if n in graph[s]}
            work.append(component - (headers or {min(component)}))
    return loops


def source_lines(elf: Path) -> dict[int, set[tuple[str, int]]]:
    lines: dict[int, set[tuple[str, int]]] = {}
    pattern = re.compile(r"^(\S+)\s+(\d+)\s+0x([0-9a-f]+)")
    for line in output(f"{CROSS}objdump", "--dwarf=decodedline", elf).splitlines():
        if match := pattern.match(line):
            place = (match[1].rsplit("/", 1)[-1], int(match[2]))
            lines.setdefault(int(match[3], 16), set()).add(place)
    return lines


def test_every_loop_of_the_binary_has_a_row_and_every_row_a_loop(
    build: Path, functions: list[Function]
) -> None:
    rows = set(places((build / "kernel.loops.csv").read_text(encoding="utf-8")))
    lines = source_lines(build / "kernel.elf")
    found: set[tuple[str, int]] = set()
    boot = symbols(build / "kernel.elf")["_start"]
    count = 0
    for function in functions:
        if function.name in ("kernel_panic", "idle_loop"):
            continue  # for ever, by intention
        if function.insns and boot <= function.insns[0].address < 0xFFFF0000:
            continue
        for loop in binary_loops(function):
            here = {place for address in loop for place in lines.get(address, ())} & rows
            assert here, f"{function.name}: loop at {min(loop):#x} without a row"
            found |= here
            count += 1
    assert found == rows
    assert count >= len(rows)
