"""The targets of a call through an argument, if all callers pass addresses of functions.

Each origin of the target is a constant, or a register of the caller as the function is entered. The
same registers are then followed in front of all calls of the function, and so on. Registers are
followed by their definitions, as for proposals, so that values in calling contexts check the result
(``quoll.value_analysis.target_check``): they prove it, or contradict it, or it is an assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quoll.cfg.cfg import Block, Cfg
from quoll.image.image import Image
from quoll.indirect.load_origins import LoadOrigin, LoadRoot, entering, origins, register_origins

__all__ = ["passed_functions"]

ARGUMENTS = range(4)  # r0 to r3 (AAPCS32, 6.4)
MOST = 64  # pairs of a function and its argument that are followed

Callers = Callable[[int], Iterable[tuple[Cfg, Block]] | None]
_Argument = tuple[int, int]  # entry of a function, register


def passed_functions(
    image: Image, cfg: Cfg, block: Block, callers: Callers
) -> frozenset[int] | None:
    """The targets of the call that ends ``block``, bit 0 set for Thumb code; None if unknown.

    ``callers`` gives the calls of a function; None if it is also entered otherwise.
    """
    found = origins(cfg, entering(cfg), block, image, across=True)
    split = _split(image, cfg, found)
    if split is None:
        return None
    targets, pending = split
    seen: set[_Argument] = set()
    while pending:
        argument = pending.pop()
        if argument in seen:
            continue
        seen.add(argument)
        more = _passed(image, argument, callers) if len(seen) <= MOST else None
        if more is None:
            return None
        targets |= more[0]
        pending |= more[1]
    return frozenset(targets)


def _passed(
    image: Image, argument: _Argument, callers: Callers
) -> tuple[set[int], set[_Argument]] | None:
    """The functions that all callers pass, and the arguments of their own that they hand on."""
    entry, register = argument
    calls = callers(entry)
    if calls is None:
        return None
    targets: set[int] = set()
    arguments: set[_Argument] = set()
    for cfg, block in calls:
        end = len(block.insns)
        found = register_origins(cfg, entering(cfg), block, end, register, image)
        split = _split(image, cfg, found)
        if split is None:
            return None
        targets |= split[0]
        arguments |= split[1]
    return targets, arguments


def _split(
    image: Image, cfg: Cfg, found: Iterable[LoadOrigin] | None
) -> tuple[set[int], set[_Argument]] | None:
    """The functions and the arguments of ``cfg`` among the origins; None if there are others."""
    if found is None:
        return None
    targets: set[int] = set()
    arguments: set[_Argument] = set()
    for origin in found:
        if origin.offsets != (0,):
            return None
        if origin.root is LoadRoot.CONSTANT and image.is_function(origin.constant):
            targets.add(origin.constant)
        elif origin.root is LoadRoot.WORD and origin.register in ARGUMENTS:
            assert origin.register is not None
            arguments.add((cfg.entry, origin.register))
        else:
            return None
    return targets, arguments
