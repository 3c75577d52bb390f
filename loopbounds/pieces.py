"""Loop bounds where calls share contexts: part by part, each for any of its callers.

What a part is entered with is any word within what value analysis says over all callers; what a
call of another part leaves is unknown but for the registers that it gives back (rule 20). So a
bound holds for every caller, and may exist for none where each of them alone has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopbounds.proof.bound import LoopBound
from loopbounds.slicing.code import KnownValues
from quoll.inlining.merged_contexts import ContextPart
from quoll.words.strided_interval import ValueSet

__all__ = ["PieceValues", "in_whole"]


@dataclass(frozen=True, slots=True)
class PieceValues:
    """What value analysis of the whole graph says of one piece."""

    whole: KnownValues
    piece: ContextPart

    def register(self, node: int, register: int, /) -> ValueSet:
        """The values of a general register when a node begins."""
        return self.whole.register(self.piece.nodes[node], register)

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """First addresses that an instruction of the node's block accesses; None: no access."""
        return self.whole.access(self.piece.nodes[node], insn)

    def frame_register(self, node: int, register: int, /) -> ValueSet | None:
        """How far a register is above sp at the entry of its part, plus ``BIAS``; None: unknown."""
        return self.whole.frame_register(self.piece.nodes[node], register)

    def frame_access(self, node: int, insn: int, /) -> ValueSet | None:
        """The same for the first addresses that an instruction accesses."""
        return self.whole.frame_access(self.piece.nodes[node], insn)

    def hands_on_a_stack_address(self, node: int, /) -> bool:
        """Whether the part of ``node`` may be handed an address in a caller's stack."""
        return self.whole.hands_on_a_stack_address(self.piece.nodes[node])


def in_whole(bound: LoopBound, loop: int) -> LoopBound:
    """The bound of ``loop`` of the whole graph. That a caller reaches it is not known."""
    return replace(bound, loop=loop, exact=None)
