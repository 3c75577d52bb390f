"""Code that changes translations, and the memory whose translation it may change (rule 44).

Addresses whose translation the platform fixes always name the same memory. All other addresses may
name other memory after such an instruction. A program that executes one may call any function after
it, and loop back to before it, so the contents of those addresses are unknown everywhere in the
program (``Image.retranslated``). Code and stacks at such addresses would be other code and other
stacks: that is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from quoll.arm.insn import Insn
from quoll.arm.system_registers import changes_translation
from quoll.cfg.cfg import Block
from quoll.errors import ControlFlowError
from quoll.image.image import Image

__all__ = ["refuse_moved", "refuse_moved_code", "translation_changes"]


def translation_changes(blocks: Iterable[Block]) -> tuple[Insn, ...]:
    """The instructions of ``blocks`` after which addresses may name other memory."""
    distinct = {id(block): block for block in blocks}
    found = {i.addr: i for b in distinct.values() for i in b.insns if changes_translation(i)}
    return tuple(found[addr] for addr in sorted(found))


def refuse_moved_code(image: Image, change: Insn, behind: Iterable[Insn]) -> None:
    """Raise ControlFlowError if the translation of code ``behind`` a change is not fixed.

    Nothing is refused without a platform that states the fixed translations.
    """
    if not image.memory.regions:
        return
    for insn in behind:
        if not image.memory.fixed(insn.addr):
            refuse_moved(image, change, "this code", insn.addr)


def refuse_moved(image: Image, change: Insn, what: str, address: int) -> None:
    """Raise ControlFlowError for ``what`` at ``address``, which may be elsewhere after a change."""
    page = address & ~0xFFF
    raise ControlFlowError(
        f"'{change.text}' at {image.place(change.addr)} may change translations, and the platform "
        f"does not fix the translation of {what}, which is used behind it",
        where=image.place(address),
        hint="if all page tables map it alike, or the MMU is off, state so: region NAME from "
        f"{page:#x} to {page + 0xFFF:#x} is cached and fixed; or end the path before: "
        "path must end at PLACE",
    )
