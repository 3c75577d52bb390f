"""Loops that wait: they read one device register, or one variable, until a bit or the word changes.

Other loops do work in between, or read a timer, too: they go on until one of the device registers
ends them that their exits test.

No program bounds such a loop, so a report names the register and the bit, or the variable that
other code has to store to, instead of a word of the analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quoll.arm.immediates import immediate_operand, left_shift
from quoll.arm.insn import AccessKind, Insn
from quoll.arm.operation import Operation
from quoll.cfg.cfg import Block, Cfg, Edge
from quoll.graph.natural_loops import NaturalLoop, find_loops
from quoll.image.image import Image
from quoll.indirect.load_origins import LoadRoot, register_origins

__all__ = ["DeviceExits", "DevicePoll", "awaited_variable", "device_exits", "device_poll"]

LONGEST = 16  # instructions of a loop that waits
BITS = 32
COMPARES = (Operation.COMPARE, Operation.COMPARE_AND_BRANCH)


@dataclass(frozen=True, slots=True)
class DevicePoll:
    """A wait for the ``bit`` of the register at ``addr``; None: for several bits, or the word."""

    addr: int
    bit: int | None

    def __str__(self) -> str:
        watched = "" if self.bit is None else f"bit {self.bit} of "
        return f"waits for {watched}the device register at {self.addr:#010x}"


@dataclass(frozen=True, slots=True)
class DeviceExits:
    """The registers at ``addrs``, in order, that the exits of a loop test."""

    addrs: tuple[int, ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{addr:#010x}" for addr in self.addrs)
        if len(self.addrs) > 1:
            return f"goes on until one of the device registers at {shown} ends it"
        return f"goes on until the device register at {shown} ends it"


def device_poll(image: Image, cfg: Cfg, header: int) -> DevicePoll | None:
    """The wait that is the loop at the address ``header``; None if it is another loop."""
    found = _only_read(image, cfg, header)
    if found is None or image.segment_at(found[0]) is not None:
        return None
    return DevicePoll(found[0], _bit(*found[1:]))


def device_exits(image: Image, cfg: Cfg, header: int) -> DeviceExits | None:
    """The device registers of the loop at ``header``; None if an exit tests none."""
    loop = _loop_at(cfg, header)
    if loop is None:
        return None
    blocks = (cfg.blocks[node] for node in loop.nodes)
    exits = {block.index for block in blocks if block.returns or block.tail or block.exits}
    exits |= {e.src for e in cfg.edges if e.src in loop.nodes and e.dst not in loop.nodes}
    tested = [_tested(image, cfg, cfg.blocks[block]) for block in sorted(exits)]
    return DeviceExits(tuple(sorted(set().union(*tested)))) if tested and all(tested) else None


def _tested(image: Image, cfg: Cfg, block: Block) -> set[int]:
    """The device registers, loaded in the block, on which the branch at its end depends."""
    found: set[int] = set()
    compares = block.last.operation is Operation.COMPARE_AND_BRANCH
    wanted: set[int] | None = set(block.last.sources) if compares else None
    for insn in reversed(block.insns[:-1]):
        if wanted is None:
            wanted = set(insn.sources) if insn.sets_flags else None
        elif insn.writes & wanted:
            wanted = wanted - insn.writes | set(insn.sources)
            addr = None if insn.memory is None else _address(image, cfg, block, insn)
            if addr is not None and image.segment_at(addr) is None:
                found.add(addr)
    return found


def awaited_variable(image: Image, cfg: Cfg, header: int) -> int | None:
    """The address of the variable that the loop only reads, until other code stores to it."""
    found = _only_read(image, cfg, header)
    if (
        found is None
        or image.segment_at(found[0]) is None
        or image.constant(found[0], 1) is not None
    ):
        return None
    return found[0]


def _only_read(image: Image, cfg: Cfg, header: int) -> tuple[int, Sequence[Insn], Insn] | None:
    """The constant address that the loop reads, its instructions, and the one that reads.

    None if it accesses other memory, calls a function, or is long.
    """
    loop = _loop_at(cfg, header)
    if loop is None:
        return None
    body = [cfg.blocks[n] for n in sorted(loop.nodes)]
    insns = [insn for block in body for insn in block.insns]
    reads = [(block, insn) for block in body for insn in block.insns if insn.memory is not None]
    if len(insns) > LONGEST or len(reads) != 1 or any(block.calls for block in body):
        return None
    ((block, read),) = reads
    addr = _address(image, cfg, block, read)
    return None if addr is None else (addr, insns, read)


def _loop_at(cfg: Cfg, header: int) -> NaturalLoop | None:
    """The only loop with its header at an address."""
    numbers = [block.index for block in cfg.blocks if block.addr == header]
    loops = [loop for loop in _loops(cfg) if loop.header in numbers]
    return loops[0] if len(loops) == 1 else None


def _loops(cfg: Cfg) -> Sequence[NaturalLoop]:
    successors: list[list[int]] = [[] for _ in cfg.blocks]
    for edge in cfg.edges:
        successors[edge.src].append(edge.dst)
    return find_loops(successors, 0)


def _address(image: Image, cfg: Cfg, block: Block, read: Insn) -> int | None:
    """The address that ``read`` loads from, if it is a constant."""
    memory = read.memory
    if memory is None or memory.base is None or memory.index is not None:
        return None
    if memory.access is not AccessKind.LOAD or memory.count != 1 or memory.writeback:
        return None
    found = register_origins(cfg, _into(cfg), block, block.insns.index(read), memory.base, image)
    addresses = {
        origin.constant + origin.offsets[0]
        for origin in found or ()
        if origin.root is LoadRoot.CONSTANT and not origin.levels and origin.offsets[0] is not None
    }
    if not found or len(addresses) != 1 or any(o.root is not LoadRoot.CONSTANT for o in found):
        return None
    return addresses.pop() + memory.displacement & 0xFFFFFFFF


def _into(cfg: Cfg) -> Mapping[int, Sequence[Edge]]:
    into: dict[int, list[Edge]] = {}
    for edge in cfg.edges:
        into.setdefault(edge.dst, []).append(edge)
    return into


def _bit(insns: Sequence[Insn], read: Insn) -> int | None:
    """The only bit that the loop tests of the word that ``read`` loads."""
    (register,) = read.transfers or (None,)
    masked: tuple[frozenset[int], int] | None = None  # registers and mask of a masked word
    for insn in insns:
        if insn is read:
            continue
        constant = immediate_operand(insn)
        if masked is not None and insn.operation in COMPARES and masked[0] == set(insn.sources):
            equal = insn.operation is Operation.COMPARE_AND_BRANCH or constant in (0, masked[1])
            return _single(masked[1]) if equal else None
        if register not in insn.sources:
            continue
        if insn.operation in (Operation.TEST, Operation.AND) and constant:
            if insn.sets_flags:
                return _single(constant)
            masked = insn.writes, constant
            continue
        shift = left_shift(insn)  # to the sign
        if shift is not None:
            return BITS - 1 - shift
    return None


def _single(mask: int) -> int | None:
    """The only bit of ``mask``, a positive number; None if it has several."""
    return mask.bit_length() - 1 if mask & (mask - 1) == 0 else None
