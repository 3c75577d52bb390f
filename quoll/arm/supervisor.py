"""Supervisor calls in code that already runs in a privileged mode (A8.8.229, B1.8.10).

Such an ``svc`` requests a service of the kernel's own handler: to run another thread, or to run in
another mode. With a stated time it is a call that returns; it overwrites lr if the current mode is
Supervisor mode.
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
    """The svc ``insn`` as a call of the handler, which returns to the next instruction."""
    return insn._replace(
        mnemonic="bl",
        flow=ControlFlow.CALL,
        target=SUPERVISOR_VECTOR,
        target_thumb=False,
        writes=frozenset([LR]),
    )
