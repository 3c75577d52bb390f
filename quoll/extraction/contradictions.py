"""Path ends that the code itself contradicts (rule 49).

A platform names the exits of kernels by their symbols. A path does not end where a called function
returns to its caller, even if the symbol has the name of an exit.
"""

from __future__ import annotations

from collections.abc import Collection, Container

from quoll.arm.insn import LR
from quoll.cfg.cfg import Block, Cfg
from quoll.cfg.transfers import by_form
from quoll.errors import ControlFlowError
from quoll.image.image import Image

__all__ = ["refuse_returning_exits"]


def refuse_returning_exits(image: Image, functions: Collection[Cfg], exits: Container[int]) -> None:
    """Raise ControlFlowError where a called function returns at one of ``exits``.

    ``exits`` are the instructions at which the platform ends paths.
    """
    called = {c for cfg in functions for b in cfg.blocks if not b.tail for c in b.calls}
    for cfg in functions:
        for block in cfg.blocks if cfg.entry in called else ():
            if block.exits and block.last.addr in exits and _returns(image, block):
                raise ControlFlowError(
                    f"paths end here by the name of the symbol, but {block.last.text} returns to "
                    f"the callers of {cfg.name}, where the path goes on",
                    where=image.place(block.last.addr),
                    hint="rename the symbol, or take it out of 'exits' of the platform file; if "
                    f"the path does end there: path must end at {block.last.addr:#x}",
                )


def _returns(image: Image, block: Block) -> bool:
    """Whether the last instruction of ``block`` has the form of a return to the caller."""
    before = block.insns[-2] if len(block.insns) > 1 else None
    keeps_lr = all(LR not in insn.writes for insn in block.insns)
    effect = by_form(image, before, block.last, preserves_lr=keeps_lr)
    return effect is not None and effect.returns
