"""Functions whose graphs grow by the targets of their indirect transfers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path as File
from typing import Any

from quoll.abstract_domain.function_values import BlockCode, LocalValues
from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import Condition, ControlFlow, Insn
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.image.image import Image
from quoll.indirect.by_values import TransferResolution, UnknownTarget, resolve
from tests.testing.quoll.building import build

HERE = File(__file__).parent
STOP = 0xF000_0000  # the return address of the outermost call
FUNCTIONS = (
    *("dense", "offset", "masked", "negative", "inside"),
    *("bounded", "wrapped", "chosen", "argument", "main"),
)
IDIOMS = ("computed", "offsets", "early", "pushed", "moved", "split", "linked", "tail")


def code_at(image: Image, addr: int) -> bytes:
    """The bytes of one instruction, which may be the last two of the image."""
    raw = image.read(addr, 4) or image.read(addr, 2)
    assert raw is not None
    return raw


class Growing:
    """A function whose graph grows by the results of ``resolve``, as in extraction.

    Calls are assumed to return. ``unknown``: unresolved transfers.
    """

    def __init__(self, image: Image, entry: int, thumb: bool, code: BlockCode) -> None:
        self.image, self.entry, self.thumb, self.code = image, entry, thumb, code
        self.found: dict[int, TransferResolution] = {}
        self.unknown: dict[int, UnknownTarget] = {}
        while self._round():
            pass

    def _round(self) -> bool:
        self.cfg = self._graph()
        self.values = LocalValues(self.cfg, self.image, self.code)
        before = dict(self.found)
        for block in self.cfg.blocks:
            if block.last.flow in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL):
                result = resolve(self.values, block.index)
                addr = block.last.addr
                if isinstance(result, TransferResolution):
                    self.found[addr] = result
                    self.unknown.pop(addr, None)
                elif result.reached:
                    self.unknown[addr] = result
        return self.found != before

    def _after(self, insn: Insn) -> list[tuple[int, EdgeKind]]:
        after: list[tuple[int, EdgeKind]] = []
        cond = insn.conditional or insn.mnemonic in ("cbz", "cbnz")
        result = self.found.get(insn.addr)
        if insn.flow is ControlFlow.NEXT or cond:
            after.append((insn.next, EdgeKind.FALLTHROUGH))
        if insn.flow is ControlFlow.JUMP and insn.target is not None:
            after.append((insn.target, EdgeKind.TAKEN))
        calls = insn.flow in (ControlFlow.CALL, ControlFlow.INDIRECT_CALL)
        if calls or (result is not None and result.kind == "call"):
            after.append((insn.next, EdgeKind.ACROSS))
        elif result is not None and result.kind == "jump":
            after += [(t & ~1, EdgeKind.INDIRECT) for t in dict.fromkeys(result.targets)]
        return after

    def _graph(self) -> Cfg:
        insns: dict[int, Insn] = {}
        edges: set[tuple[int, int, EdgeKind]] = set()
        leaders = {self.entry}
        work: list[tuple[int, tuple[Condition, ...]]] = [(self.entry, ())]
        while work:
            addr, it = work.pop()
            if addr in insns:
                continue
            raw = code_at(self.image, addr)
            insn = insns[addr] = decode(raw, addr, self.thumb, it)
            for target, kind in self._after(insn):
                edges.add((addr, target, kind))
                if insn.flow is not ControlFlow.NEXT:
                    leaders.add(target)
                following = it[1:] or it_conditions(insn)
                work.append((target, following if target == insn.next else ()))
        return self._blocks(insns, edges, leaders)

    def _blocks(
        self, insns: dict[int, Insn], edges: set[tuple[int, int, EdgeKind]], leaders: set[int]
    ) -> Cfg:
        groups: list[list[Insn]] = []
        for addr in sorted(insns):
            before = groups[-1][-1] if groups else None
            starts = addr in leaders or before is None or before.next != addr
            if starts or (before is not None and before.flow is not ControlFlow.NEXT):
                groups.append([])
            groups[-1].append(insns[addr])
        groups.sort(key=lambda g: (g[0].addr != self.entry, g[0].addr))
        index = {group[0].addr: i for i, group in enumerate(groups)}
        blocks = tuple(
            Block(i, tuple(g), returns=self._returns(g[-1])) for i, g in enumerate(groups)
        )
        last = {block.last.addr: block.index for block in blocks}
        found = {Edge(last[s], index[t], k) for s, t, k in edges if s in last}
        return Cfg(self.entry, "f", self.thumb, blocks, tuple(sorted(found, key=str)), True)

    def _returns(self, insn: Insn) -> bool:
        result = self.found.get(insn.addr)
        return result is not None and result.kind == "return"


@cache
def functions(
    source: str, names: tuple[str, ...], options: tuple[tuple[str, Any], ...]
) -> tuple[Image, Mapping[str, Growing]]:
    language = "c" if source.endswith(".c") else "asm"
    text = (HERE / source).read_text()
    image = Image.load(build(text, "-fno-inline", language=language, **dict(options)))
    code = BlockCode()
    grown: dict[str, Growing] = {}
    for name in names:
        symbol = image.symbol(name)
        assert symbol is not None
        grown[name] = Growing(image, symbol.addr & ~1, symbol.thumb, code)
    return image, grown


def options(**chosen: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(chosen.items()))


C_OPTIONS = [
    options(optimise=optimise, thumb=thumb, cpu=cpu)
    for optimise in ("-O0", "-O1", "-O2", "-Os")
    for thumb, cpu in ((False, "arm1136jf-s"), (True, "cortex-a8"))
]


def grow(source: str, language: str) -> Growing:
    image = Image.load(build(source, language=language))
    symbol = image.symbol("main")
    assert symbol is not None
    return Growing(image, symbol.addr, symbol.thumb, BlockCode())
