"""The reason why a function never returns: the last instruction of each of its paths.

The claim is a greatest fixed point (rule 3): a function returns if some transfer in it was found to
return, or is unresolved. A function that never returns has no such transfer, and each of its paths
ends in one of the ways named here, or iterates for ever. None of them depends on a stack pointer, a
status word or a loaded register: such transfers are unresolved.
"""

from __future__ import annotations

from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block, Cfg, Program
from quoll.image.image import Image

__all__ = ["never_returning", "why_never_returns"]

ENDLESS = "it loops for ever"


def never_returning(program: Program, image: Image) -> tuple[str, ...]:
    """The functions that are called and never return, each with its evidence."""
    return tuple(
        f"{image.place(cfg.entry)}: {why_never_returns(program, cfg, image)}"
        for cfg in program.functions.values()
        if not cfg.returns and cfg.entry not in program.entries
    )


def why_never_returns(program: Program, cfg: Cfg, image: Image) -> str:
    """The evidence, each kind once, with the first place of that kind."""
    if cfg.entry in program.guidance.never:
        return "a fact says so"
    going_on = {edge.src for edge in cfg.edges}
    found: dict[str, int] = {}
    for block in cfg.blocks:
        for what in _last_instructions(program, block, goes_on=block.index in going_on):
            found.setdefault(what, block.last.addr)
    if not found:
        return ENDLESS
    return "; ".join(f"{what} at {image.place(addr)}" for what, addr in found.items())


def _last_instructions(program: Program, block: Block, *, goes_on: bool) -> list[str]:
    """The ways in which control may end in ``block``."""
    found = []
    if block.exits:
        leaving = block.last.flow is ControlFlow.EXCEPTION_RETURN
        found.append("its path ends by an exception return" if leaving else "its path ends")
    names = [program.functions[c].name for c in block.calls if not program.functions[c].returns]
    found += [f"it calls {name}, which never returns," for name in names]
    if not (found or goes_on or block.calls or block.passes):
        found.append(f"nothing follows {block.last.text}")
    return found
