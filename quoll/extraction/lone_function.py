"""One function without its callees, as a search through all code of an image reads it.

Direct control flow is followed, calls come back, and returns are known by their form. A jump table,
or another indirect jump, is not followed: then the function is not understood.
"""

from __future__ import annotations

from quoll.arm.insn import ControlFlow, Insn
from quoll.cfg.cfg import Cfg
from quoll.cfg.discover import DiscoveryPolicy, FunctionBuilder, SupervisorCallEffect
from quoll.cfg.growing_function import CalleeEntry, GrowingFunction
from quoll.cfg.transfers import by_form
from quoll.errors import WcetError
from quoll.extraction.functions import built, function_name
from quoll.image.image import Image

__all__ = ["is_endless", "lone_function"]


def is_endless(image: Image, word: int) -> bool:
    """Whether the function at ``word``, bit 0 set for Thumb code, has no way out, as a thread."""
    cfg = lone_function(image, CalleeEntry(word & ~1, bool(word & 1)))
    return cfg is not None and not any(b.returns or b.tail or b.exits for b in cfg.blocks)


def lone_function(image: Image, callee: CalleeEntry) -> Cfg | None:
    """The graph of one function, if all callees return; None if its code is not understood."""
    policy = DiscoveryPolicy(
        ends=frozenset(),
        is_function=lambda addr: any(s.kind == "func" for s in image.symbols.at(addr)),
        returning=frozenset(s.addr for s in image.symbols.symbols if s.kind == "func"),
        inline=frozenset(),
        fragments=frozenset(),
        apart=frozenset(),
        replaced=frozenset(),
        going_on=frozenset(),
        supervisor=SupervisorCallEffect.UNKNOWN,
        self_jumps_end=False,
    )
    function = GrowingFunction(*callee, {}, {callee.entry})
    builder = FunctionBuilder(image, function, policy)
    seen: set[int] = set()
    try:
        while builder.growing:
            builder.explore()
            for site in sorted(function.sites - seen):
                seen.add(site)
                if not _followed(image, builder, function.insns[site]):
                    return None
    except WcetError:
        return None
    return built(function, function_name(image, callee.entry), returns=True)


def _followed(image: Image, builder: FunctionBuilder, insn: Insn) -> bool:
    """Follow an indirect transfer that is a call or a return by its form."""
    if insn.flow is ControlFlow.INDIRECT_CALL:
        builder.continue_after(insn.addr)
        return True
    function = builder.function
    effect = by_form(image, function.before(insn), insn, preserves_lr=function.keeps_lr)
    if effect is None or not effect.returns:
        return False
    function.returns_at(insn.addr)
    return True
