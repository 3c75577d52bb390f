"""What one function, as it is known now, says of itself: asked of many functions at a time.

An answer follows from the function's graph and from what is believed of its callees; nothing is
changed here, so that functions can be shared out to the processors (``quoll.processes.parallel``),
and the answers are the same however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from quoll.arm.insn import Insn
from quoll.cfg.cfg import Cfg
from quoll.cfg.transfers import TransferEffect
from quoll.indirect.frames import Frame, GivesUp, prove_frame
from quoll.indirect.local_code import Nearby, Used
from quoll.indirect.returns import Confirmer, Doubt

__all__ = ["Answer", "Examined", "examined"]

Answer = tuple[TransferEffect, bool] | Doubt  # what a transfer does, and whether it is a call


@dataclass(frozen=True, slots=True)
class Examined:
    """``answers``: of each open transfer, None where values of the whole function may tell.

    ``used`` is what they rest on. ``frame`` is what the quick proof of returns has found; None if
    it was not asked for, or gives up, at the instruction ``lost`` if that is at one.
    """

    answers: Mapping[int, Answer | None]
    used: Used
    frame: Frame | None
    lost: Insn | None = None

    @property
    def undecided(self) -> frozenset[int]:
        """The transfers that need the values of the whole function."""
        return frozenset(site for site, answer in self.answers.items() if answer is None)


def examined(
    cfg: Cfg,
    open_sites: Set[int],
    returns: Set[int] | None,
    nearby: Nearby,
    confirmer: Confirmer,
) -> Examined:
    """Answers for the transfers at ``open_sites``; the proof that those at ``returns`` return.

    With ``returns`` None nothing is claimed that could be proved.
    """
    used = Used()
    answers = nearby(cfg, open_sites, used)
    frame, lost = None, None
    if returns is not None and None not in answers.values():
        try:
            frame = prove_frame(cfg, returns, confirmer.contract)
        except GivesUp as reason:
            lost = reason.insn
    return Examined(answers, used, frame, lost)
