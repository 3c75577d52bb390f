"""Supervisor calls inside of code that runs already in a privileged mode (A8.8.229, B1.8.10).

Such an ``svc`` requests a service of the kernel's own handler: to run another thread, or in
another mode. With a stated time it is a call that returns: lr is overwritten if
the mode is the one that it enters.
"""

from __future__ import annotations

from quoll.arm.insn import LR, ControlFlow, Insn
from quoll.arm.operation import Operation

__all__ = ["SUPERVISOR_VECTOR", "as_call", "is_supervisor_call"]

SUPERVISOR_VECTOR = 8  # offset in the table of vectors (B1.8.1): stands for the handler


def is_supervisor_call(insn: Insn) -> bool:
    """Whether ``insn`` is an svc."""
    return insn.operation is Operation.SUPERVISOR_CALL


def as_call(insn: Insn) -> Insn:
    """The svc ``insn`` as a call of the handler, which comes back behind it."""
    return insn._replace(
        mnemonic="bl",
        flow=ControlFlow.CALL,
        target=SUPERVISOR_VECTOR,
        target_thumb=False,
        writes=frozenset([LR]),
    )
