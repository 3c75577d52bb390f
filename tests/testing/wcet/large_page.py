"""A document of a page that is as large as asked: a tree of calls through long functions."""

from __future__ import annotations

from typing import Any

__all__ = ["large_document"]

CAUSES = ["issue", "stalls", "branches", "I-misses", "D-misses", "stores", "entry, exit", "TLB"]
FUNCTIONS = 200
LONG = 5000  # blocks of the first function
BASE = 0xF0010000


def large_document(blocks: int) -> dict[str, Any]:
    """``blocks`` blocks over all functions, and as many calls on the worst path."""
    each = (blocks - LONG) // (FUNCTIONS - 1)
    functions = []
    address = BASE
    for number in range(FUNCTIONS):
        size = each if number else LONG
        functions.append(_function(f"function_{number}", address, size))
        address += 16 * size
    rows = [_row(-1, functions[0], None)]
    # Each of them calls four, and the last ones none.
    for index in range(1, blocks):
        rows.append(_row((index - 1) // 4, functions[index % FUNCTIONS], BASE + 12))
    cycles = sum(sum(row[7]) for row in rows)
    loads = [
        [
            f["address"],
            [[b["address"], 3, 40] for b in f["blocks"]],
            [[source, target, 3] for source, target, _ in f["edges"]],
            [[f["address"], 3, 3]],
        ]
        for f in functions
    ]
    path = {"title": "worst path of large", "cycles": cycles, "rows": rows, "loads": loads}
    entry = {
        "name": "large",
        "symbol": "large",
        "address": BASE,
        "cycles": cycles,
        "microseconds": cycles / 532,
        "formula": "",
        "for_what": "",
        "seen": None,
        "interval": "",
        "solver": "none",
        "causes": [cycles, *[0] * 7],
        "method": "none",
        "optimal": True,
        "unrealisable": "",
        "unmasking": [],
        "never_returning": [],
        "proved": [],
        "start": "",
        "contexts": len(rows),
        "blocks": blocks,
        "paths": [path],
        "caches": [],
    }
    lines = [[n, f"line {n}"] for n in range(1, 20_000)]
    loops = [
        {
            "entry": 0,
            "function": f["address"],
            "header": b["address"],
            "contexts": 1,
            "place": hex(b["address"]),
            "method": "nusmv",
            "low": 3,
            "high": 3,
            "executions": 3,
            "exact": True,
            "evidence": "count <= 3",
            "assumptions": [],
        }
        for f in functions
        for b in f["blocks"][::10]
    ]
    return {
        "schema_version": 1,
        "version": "0",
        "kernel": {"path": "large.elf", "sha256": "0"},
        "platform": {
            "name": "none",
            "description": "",
            "chosen": "",
            "megahertz": 532,
            "l2": False,
        },
        "facts_files": [],
        "causes": CAUSES,
        "heat": ["#ffffff", "#ff8640"],
        "legend": [["#e3e6ea", "not on the worst path"]],
        "latency": None,
        "functions": functions,
        "files": [{"path": "l.c", "missing": "", "lines": lines}],
        "entries": [entry],
        "unbounded": [],
        "loops": loops,
        "assumptions": [],
        "facts": [],
        "comparison": None,
    }


def _function(name: str, address: int, size: int) -> dict[str, Any]:
    """A chain of diamonds."""
    blocks = [
        {
            "address": address + 16 * n,
            "code": [[address + 16 * n + 4 * k, "mov r0, r1", 0, 1 + n] for k in range(4)],
            "calls": [],
            "ends": ["return"] if n == size - 1 else [],
        }
        for n in range(size)
    ]
    edges = [
        [address + 16 * n, address + 16 * (n + step), "taken" if step == 2 else "fallthrough"]
        for n in range(size)
        for step in (1, 2)
        if n + step < size
    ]
    return {"name": name, "address": address, "blocks": blocks, "edges": edges}


def _row(parent: int, function: dict[str, Any], site: int | None) -> list[Any]:
    blocks = [[function["address"], 3, 40]]
    return [parent, function["address"], site, "", 3, 0, None, [40, *[0] * 7], blocks]
