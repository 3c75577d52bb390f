"""The claims of the analysis about a hostile program: its graph, its loop bounds, its bounds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from campaigns.adversary.executor import Run
from campaigns.adversary.program import Program
from ilp.solvers import highs
from loopbounds.budgets import table
from loopbounds.budgets.budget import Budget, ProcessLimits, SolverLimits
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.proof import rounds
from loopbounds.proof.keys import model_key
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.prove import ProofOutcome
from loopbounds.proof.prove import prove_model as prove_once
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from quoll.arm.insn import Insn
from quoll.assumptions import PENDING
from quoll.image.image import Image
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.raw_memory import LoadedMemory
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.platforms.platform_model import DIRECTORY

__all__ = ["Claims", "Product", "memoised_queries"]

T = TypeVar("T")
BUDGET = Budget(seconds=1, queries=5, limits=SolverLimits(ProcessLimits(seconds=1)))
SECOND = """
[[memory]]
name = "the same RAM again"
virtual = [0xE0000000, 0xE7FFFFFF]
physical = {physical}
kind = "cached"
fixed = true
"""


@dataclass(frozen=True)
class Loaded(LoadedMemory):
    """An image that was read before, instead of memory beside an ELF."""

    loaded: Image | None = None

    def image(self, elf: Path) -> Image:
        """The image."""
        assert self.loaded is not None
        return self.loaded


@dataclass(frozen=True)
class Claims:
    """The claims of a report about one entry, context by context."""

    result: AnalysisResult
    name: str

    @property
    def paths(self) -> Sequence[PreparedPaths]:
        """The paths from every start, the entry's first."""
        return self.result.entries[self.name].paths

    @property
    def cycles(self) -> int:
        """The bound."""
        return self.result.entries[self.name].cycles

    @functools.cached_property
    def insns(self) -> dict[int, Insn]:
        """Every instruction of its graphs."""
        return {
            insn.addr: insn
            for paths in self.paths
            for node in paths.graph.nodes
            for insn in node.block.insns
        }

    @functools.cached_property
    def steps(self) -> frozenset[tuple[int, int]]:
        """Pairs (instruction, possible next instruction), by address."""
        found: set[tuple[int, int]] = set()
        for paths in self.paths:
            nodes = paths.graph.nodes
            for node in nodes:
                insns = node.block.insns
                found.update((a.addr, b.addr) for a, b in pairwise(insns))
            for edge in paths.graph.edges:
                found.add((nodes[edge.src].block.last.addr, nodes[edge.dst].block.addr))
        return frozenset(found)

    @functools.cached_property
    def ends(self) -> frozenset[int]:
        """Addresses of instructions after which a path may end."""
        return frozenset(
            paths.graph.nodes[n].block.last.addr for paths in self.paths for n in paths.graph.exits
        )

    @functools.cached_property
    def halts(self) -> frozenset[int]:
        """Addresses of last instructions of blocks from which control gets nowhere else."""
        return frozenset(
            paths.graph.nodes[n].block.last.addr for paths in self.paths for n in paths.graph.halts
        )

    def path(self, run: Run) -> Run:
        """The path of an execution, which ends where control gets to a loop that does nothing."""
        ends = (at for at, pc in enumerate(run.pcs, 1) if pc in self.halts)
        return replace(run, pcs=run.pcs[: next(ends, len(run.pcs))])

    @functools.cached_property
    def loops(self) -> dict[int, tuple[int, bool, frozenset[int]]]:
        """By header address: the bound, whether it is exact, and the loop's instructions."""
        found: dict[int, tuple[int, bool, frozenset[int]]] = {}
        for paths in self.paths:
            graph = paths.graph
            for bound in paths.bounds:
                loop = graph.loops[bound.loop]
                header = graph.nodes[loop.header].block.addr
                body = frozenset(i.addr for n in loop.nodes for i in graph.nodes[n].block.insns)
                if bound.bound is None:
                    continue
                rounds = bound.bound + graph.apart(loop)
                more, exact, inside = found.get(header, (0, bound.exact is True, frozenset()))
                exact = exact and bound.exact is True and (not more or more == rounds)
                found[header] = max(more, rounds), exact, inside | body
        return found

    @property
    def pending(self) -> bool:
        """Whether the bound is for paths with a pending interrupt."""
        return len(self.paths) > 1 or any(
            assumption.kind is PENDING for assumption in self.result.entries[self.name].assumptions
        )

    def leaves_kernel(self, address: int) -> bool:
        """Whether the report lists that the exception return there leaves the kernel."""
        return any(
            "exception return" in text and f" at {address:#010x} " in text
            for text in map(str, self.result.assumptions)
        )

    def leaves_open(self, address: int) -> bool:
        """Whether the report lists that the target of the instruction there is unknown."""
        return any(
            text.startswith(("return in its context:", "targets in their context:"))
            and f" at {address:#010x} " in text
            for text in map(str, self.result.assumptions)
        )

    def assumes(self, name: str) -> bool:
        """Whether the report lists an assumption of that name."""
        return any(
            text.startswith(f"{name}:") or f": {name}:" in text
            for text in map(str, self.result.assumptions)
        )


class Product:
    """The analysis of the programs of one ELF."""

    def __init__(self, elf: Path, folder: Path) -> None:
        self._elf, self._folder = elf, folder
        self.image = Image.load(elf)

    def analyse(self, program: Program, number: str) -> AnalysisResult:
        """The result for one program. Raises as ``wcet.analysis.analysis.analyse``."""
        options = AnalysisOptions(
            entries=("all",) if program.handler else (f"p{number}",),
            platform=self._platform(program, number),
            l2=None,
            facts=self._facts(program, number),
            neighbouring_facts=False,
            exits=(),
            solver="highs",
            time_limit=20.0,
            bounds=BoundOptions(budget=BUDGET, workers=0),
            loaded_memory=Loaded(loaded=self.image),
        )
        return analyse(self._elf, options, StageLog(verbose=False))

    def _facts(self, program: Program, number: str) -> tuple[Path, ...]:
        """The facts file of the program, if it has facts."""
        if not program.stated(number):
            return ()
        path = self._folder / f"p{number}.facts"
        path.write_text(program.stated(number))
        return (path,)

    def _platform(self, program: Program, number: str) -> str:
        """The board's own, or one with the entries of this program, or with two windows."""
        board = program.board
        if not program.handler and program.windows == 1:
            return board.platform
        text = (DIRECTORY / f"{board.platform}.toml").read_text()
        if program.handler:
            before, _, rest = text.partition("[entries]\n")
            _, _, rest = rest.partition("\n\n")
            entries = f"""syscall = {{ vector = 0, symbols = ["p{number}"] }}
interrupt = {{ vector = 0, symbols = ["h{number}"] }}
"""
            text = f"{before}[entries]\n{entries}\n{rest}"
        if program.windows == 2:
            text += SECOND.format(physical="0x40000000" if board.armv7 else "0x80000000")
        path = self._folder / f"{board.platform}-{bool(program.handler):d}-{program.windows}.toml"
        path.write_text(text)
        return str(path)


KNOWN: dict[object, tuple[InvariantResult, ...]] = {}  # results of NuSMV, by model and checks
PROVED: dict[tuple[str, int], ProofOutcome] = {}  # by cache key, and the largest bound to prove


@contextmanager
def memoised_queries() -> Iterator[None]:
    """Run NuSMV once for each model, prove each loop's model once, and solve without a fork."""
    plain, known = nusmv.check_invariants, KNOWN

    def check_invariants(
        text: str, queries: Sequence[InvariantQuery], limits: ProcessLimits, solver: Path
    ) -> tuple[InvariantResult, ...]:
        key = (text, tuple(queries))
        if key not in known:
            results = plain(text, queries, limits, solver)
            if any(
                r.verdict in (InvariantVerdict.FAILED, InvariantVerdict.EXPIRED) for r in results
            ):
                return results
            known[key] = results
        return known[key]

    def prove_model(
        model: LoopModel, budget: Budget, checker: Checker, most: int = table.HUGE
    ) -> ProofOutcome:
        key = model_key(model, budget, checker), most
        if key not in PROVED:
            outcome = prove_once(model, budget, checker, most)
            if outcome.failed:
                return outcome
            PROVED[key] = outcome
        return PROVED[key]

    def solve(work: Callable[[], T], seconds: float | None) -> T:
        return work()

    with (
        patch.object(nusmv, "check_invariants", check_invariants),
        patch.object(rounds, "prove_model", prove_model),
        patch.object(highs, "apart", solve),
    ):
        yield
