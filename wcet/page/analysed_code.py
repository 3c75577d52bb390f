"""The analysed code: functions, blocks and instructions, with their source lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quoll.cfg.cfg import Block
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.reports.loads import function_of, within_functions
from wcet.reports.path_text import read_source

__all__ = ["AnalysedCode", "SourceLines"]

AROUND = 3  # source lines before and after each line with code


@dataclass(slots=True)
class _Function:
    blocks: dict[int, Block] = field(default_factory=dict)
    edges: dict[tuple[int, int], str] = field(default_factory=dict)


class AnalysedCode:
    """Every function that a graph of any entry reaches, over all contexts and starts."""

    def __init__(self, result: AnalysisResult) -> None:
        self._result = result
        self._functions: dict[int, _Function] = {}
        for entry in result.entries.values():
            for graph in _graphs(entry):
                self._add(graph)
            for edge in entry.infeasible:
                function = entry.graph.contexts[edge.context].function & ~1
                known = self._functions.get(function, _Function())
                if edge.source in known.blocks and edge.target in known.blocks:
                    known.edges.setdefault((edge.source, edge.target), "infeasible")

    def _add(self, graph: Supergraph) -> None:
        for number, node in enumerate(graph.nodes):
            function = self._functions.setdefault(function_of(graph, number), _Function())
            function.blocks.setdefault(node.block.addr, node.block)
        for number, source, target in within_functions(graph):
            exits = graph.nodes[source].block.addr, graph.nodes[target].block.addr
            function = self._functions[function_of(graph, source)]
            function.edges[exits] = graph.edges[number].kind.value

    def document(self, sources: SourceLines) -> list[dict[str, Any]]:
        """The functions by address; an instruction is its address, text, file and line."""
        return [
            {
                "name": self._result.function(address),
                "address": address,
                "blocks": [_block(block, sources) for _, block in sorted(found.blocks.items())],
                "edges": [[*exits, kind] for exits, kind in sorted(found.edges.items())],
            }
            for address, found in sorted(self._functions.items())
        ]


def _graphs(entry: EntryResult) -> Iterable[Supergraph]:
    yield entry.graph
    yield from (paths.graph for paths in entry.paths)
    yield from (one.paths.graph for one in entry.summaries)


def _block(block: Block, sources: SourceLines) -> dict[str, Any]:
    exits = ["tail call"] * block.tail + ["return"] * block.returns + ["end of path"] * block.exits
    return {
        "address": block.addr,
        "code": [[insn.addr, insn.text, *sources.number(insn.addr)] for insn in block.insns],
        "calls": [callee & ~1 for callee in (*block.calls, *block.passes)],
        "ends": exits,
    }


class SourceLines:
    """The source lines of instructions, and the text around them.

    An ELF may name any file of this machine. Only files in ``folder`` are copied into a page,
    because pages are passed on.
    """

    def __init__(self, image: Image, folder: Path) -> None:
        self._image, self._folder = image, folder
        self._files: dict[str, int] = {}
        self._lines: list[set[int]] = []

    def number(self, address: int) -> tuple[int, int]:
        """Index of the file and number of the line; (-1, 0) if there is none."""
        line = self._image.line(address)
        if line is None:
            return -1, 0
        file = self._files.setdefault(line.path, len(self._files))
        if file == len(self._lines):
            self._lines.append(set())
        self._lines[file].add(line.line)
        return file, line.line

    def document(self) -> list[dict[str, Any]]:
        """The files, by index, each with its lines with code and the surrounding lines."""
        return [
            {"path": path, **self._text(path, self._lines[number])}
            for path, number in self._files.items()
        ]

    def _text(self, path: str, lines: set[int]) -> dict[str, Any]:
        inside = self._has(path)
        text = read_source(self._folder / path) if inside else []
        shown = sorted({n + k for n in lines for k in range(-AROUND, AROUND + 1)})
        return {
            "missing": "" if text else "it is not there" if inside else "it is outside the folder",
            "lines": [[n, text[n - 1].rstrip().expandtabs(4)] for n in shown if 0 < n <= len(text)],
        }

    def _has(self, path: str) -> bool:
        try:
            return (self._folder / path).resolve().is_relative_to(self._folder.resolve())
        except (OSError, ValueError, RuntimeError):  # an invalid file name
            return False
