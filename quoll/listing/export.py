"""Programs for other tools as JSON."""

from __future__ import annotations

from quoll.assumptions import table
from quoll.cfg.call_graph import Recursion, recursions
from quoll.cfg.cfg import Cfg, Program
from quoll.graph.loops import Loop
from quoll.image.image import Image
from quoll.inlining.context_count import Counting
from quoll.inlining.vivu import FULL, Vivu
from quoll.listing.listing import function_loops

__all__ = ["SCHEMA", "program_json"]

SCHEMA = 2  # version of what ``program_json`` gives

Json = dict[str, object]


def program_json(program: Program, image: Image, vivu: Vivu = FULL) -> Json:
    """Everything about ``program`` in plain values; addresses are integers, places text.

    Contexts are counted as ``vivu`` has them.
    """
    cfgs = list(program.functions.values())
    described = [_function_json(program, cfg, image) for cfg in cfgs]
    loops = sum(len(found) for _, found in described)
    count = Counting(program, image, vivu)
    contexts = {
        program.functions[entry].name: size.contexts if (size := count.of(entry)) else None
        for entry in program.entries
    }
    return {
        "schema": SCHEMA,
        "sha256": image.sha256,
        "entries": list(program.entries),
        "functions": [function for function, _ in described],
        "instructions": sum(len(b.insns) for cfg in cfgs for b in cfg.blocks),
        "blocks": sum(len(cfg.blocks) for cfg in cfgs),
        "edges": sum(len(cfg.edges) for cfg in cfgs),
        "loops": loops,
        "contexts": contexts,
        "jump_tables": [
            {
                "address": table.addr,
                "place": image.place(table.addr),
                "table": table.table,
                "entries": list(table.targets),
            }
            for table in program.jump_tables
        ],
        "unresolved": [
            {"address": u.addr, "place": u.where, "reason": u.reason, "hint": u.hint}
            for u in program.unresolved
        ],
        "noreturn": [cfg.name for cfg in cfgs if not cfg.returns],
        "recursion": [_recursion_json(program, r) for r in recursions(program)],
        "assumptions": list(program.assumptions),
        "assumption_kinds": table(program.assumptions),
    }


def _recursion_json(program: Program, recursion: Recursion) -> Json:
    functions, depths = program.functions, program.guidance.depths
    return {
        "functions": [functions[f].name for f in sorted(recursion.functions)],
        "cycle": [functions[call.caller].name for call in recursion.cycle],
        "depths": {
            functions[f].name: depths[f].activations
            for f in sorted(recursion.functions & depths.keys())
        },
        "proved": [
            functions[f].name
            for f in sorted(recursion.functions & depths.keys())
            if not depths[f].fact
        ],
        "bounded": recursion.bounded,
    }


def _function_json(program: Program, cfg: Cfg, image: Image) -> tuple[Json, tuple[Loop, ...]]:
    loops, irreducible = function_loops(cfg)
    function: Json = {
        "name": cfg.name,
        "address": cfg.entry,
        "place": image.place(cfg.entry),
        "thumb": cfg.thumb,
        "returns": cfg.returns,
        "blocks": [
            {
                "address": block.addr,
                "end": block.end,
                "line": str(image.line(block.addr) or ""),
                "calls": [program.functions[c].name for c in block.calls],
                "replaced": [image.place(c) for c in block.passes],
                "tail": block.tail,
                "returns": block.returns,
                "exits": block.exits,
            }
            for block in cfg.blocks
        ],
        "edges": [[edge.src, edge.dst, edge.kind.value] for edge in cfg.edges],
        "loops": [
            {"header": loop.header, "blocks": sorted(loop.nodes), "parent": loop.parent}
            for loop in loops
        ],
        "irreducible": [list(edge) for edge in irreducible],
    }
    return function, loops
