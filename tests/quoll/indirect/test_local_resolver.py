"""The local resolution of a transfer, against the values of the whole function."""

from __future__ import annotations

import pytest

from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Cfg
from quoll.cfg.transfers import TransferEffect
from quoll.image.image import Image
from quoll.indirect import local_resolver as nearby
from quoll.indirect.by_values import TransferResolution
from quoll.indirect.local_resolver import LocalResolver, ResolutionEvidence
from quoll.indirect.returns import UnresolvedReason
from tests.testing.quoll.growing import (
    C_OPTIONS,
    FUNCTIONS,
    IDIOMS,
    Growing,
    functions,
    grow,
    options,
)

Answer = tuple[TransferEffect, bool] | UnresolvedReason | None


@pytest.fixture(autouse=True)
def _every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "SMALL", 0)


def answers(image: Image, cfg: Cfg) -> dict[int, Answer]:
    sites = {
        b.last.addr
        for b in cfg.blocks
        if b.last.flow in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
    }
    return LocalResolver(image)(cfg, sites, ResolutionEvidence())


def agrees(image: Image, function: Growing) -> int:
    """The number of resolved transfers; each agrees with values, or has more targets."""
    decided = 0
    for site, answer in answers(image, function.cfg).items():
        result = function.found.get(site)
        if isinstance(answer, UnresolvedReason):
            assert result is None, (hex(site), answer, result)
        elif answer is not None and result is not None:
            effect, calls = answer
            assert result.kind == ("call" if calls else "jump")
            found = {t.entry | t.thumb for t in effect.targets}
            assert found >= set(result.targets), (hex(site), found, result)
            decided += 1
    return decided


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("chosen", C_OPTIONS, ids=lambda o: " ".join(map(str, dict(o).values())))
def test_compiled_switches(chosen: tuple[tuple[str, object], ...]) -> None:
    image, grown = functions("switches.c", FUNCTIONS, chosen)
    decided = sum(agrees(image, grown[name]) for name in FUNCTIONS)
    assert decided >= (2 if dict(chosen)["optimise"] == "-O0" else 4)


def test_idioms() -> None:
    image, grown = functions("idioms.S", IDIOMS, options())
    decided = {name for name in IDIOMS if agrees(image, grown[name])}
    assert decided >= {"computed", "offsets", "split"}


def only_answer(source: str) -> tuple[Answer, TransferResolution | None]:
    """The resolutions of the only transfer that is no return, locally and by values."""
    function = grow(".text\n.syntax unified\n.global main\n" + source, "asm")
    returns = {site for site, result in function.found.items() if result.kind == "return"}
    found = answers(function.image, function.cfg)
    ((site, answer),) = ((s, a) for s, a in found.items() if s not in returns)
    return answer, function.found.get(site)


def reason(source: str) -> str:
    answer, result = only_answer(source)
    assert isinstance(answer, UnresolvedReason)
    assert result is None
    return answer.reason


def test_a_pointer_that_may_be_written() -> None:
    said = reason(
        "main: push {r4, lr}\n ldr r4, =cell\n mov r0, #0\n ldr r3, [r4, #4]\n blx r3\n"
        " pop {r4, pc}\n.data\ncell: .word 0, 0\n"
    )
    assert "which may be written" in said


def test_a_pointer_from_a_call() -> None:
    said = reason("main: push {r4, lr}\n bl f\n mov r3, r0\n blx r3\n pop {r4, pc}\nf: bx lr\n")
    assert "comes from the call at" in said


def test_a_pointer_kept_on_the_stack_during_a_call() -> None:
    said = reason("main: push {r1, lr}\n bl f\n ldr r3, [sp]\n blx r3\n pop {r1, pc}\nf: bx lr\n")
    assert "comes from the call at" in said


def test_a_pointer_through_an_argument() -> None:
    said = reason("main: push {r4, lr}\n ldr r3, [r0, #8]\n blx r3\n pop {r4, pc}\n")
    assert "depends on r0 as it was" in said


def test_a_pointer_compared_with_an_address_is_left_to_values() -> None:
    answer, result = only_answer(
        "main: push {r4, lr}\n ldr r2, =cell\n cmp r0, r2\n beq 1f\n ldr r2, =cell + 4\n"
        " cmp r0, r2\n bne 2f\n1: ldr r3, [r0]\n blx r3\n2: pop {r4, pc}\n"
        ".section .rodata\ncell: .word f, g\n.text\nf: bx lr\ng: bx lr\n"
    )
    assert answer is None
    assert result is not None
    assert len(result.targets) == 2


@pytest.mark.parametrize(
    "loop",
    [
        "1: cmp r4, r5\n beq 2f\n ldr r3, [r4, #4]\n blx r3\n ldr r4, [r4]\n b 1b\n",
        "b 3f\n1: ldr r3, [r4, #4]\n blx r3\n ldr r4, [r4]\n3: cmp r4, r5\n bne 1b\n",
        "1: bic r4, r4, #3\n cmp r4, #0\n popeq {r4, r5, r6, pc}\n ldr r3, [r4, #4]\n blx r3\n",
    ],
)
def test_a_pointer_that_is_another_than_some_address(loop: str) -> None:
    said = reason(
        f"main: push {{r4, r5, r6, lr}}\n mov r4, r0\n ldr r5, =cell\n {loop}"
        "2: pop {r4, r5, r6, pc}\n.section .rodata\ncell: .word f, f\n.text\nf: bx lr\n"
    )
    assert "depends on r0 as it was" in said


def test_what_is_stored_between_is_left_to_values() -> None:
    answer, result = only_answer(
        "main: push {r1, lr}\n ldr r2, =main\n str r2, [sp]\n ldr r3, [sp]\n blx r3\n"
        " pop {r1, pc}\n"
    )
    assert not isinstance(answer, UnresolvedReason)
    assert result is not None


def test_a_pointer_to_the_stack_from_before_may_change_what_is_spilled() -> None:
    """Which words of the stack it hits is not known where the path starts after it was made."""
    answer, result = only_answer(
        "main: push {r4, lr}\n sub sp, sp, #8\n add r2, sp, #4\n mov r0, #1\n str r0, [sp, #4]\n"
        " str r1, [r2]\n ldr r3, [sp, #4]\n adr r12, 1f\n ldr pc, [r12, r3, lsl #2]\n"
        "1: .word 2f, 3f\n2: mov r0, #2\n3: add sp, sp, #8\n pop {r4, pc}\n"
    )
    assert result is None
    assert answer is None or isinstance(answer, UnresolvedReason)


def test_a_return_is_no_doubt() -> None:
    function = grow(
        ".text\n.global main\nmain: ldr r3, [r0]\n cmp r3, #0\n bxeq lr\n bx lr\n", "asm"
    )
    assert set(answers(function.image, function.cfg).values()) == {None}


def test_a_jump_is_not_decided_where_lr_may_hold_the_address_after_it() -> None:
    answer, result = only_answer(
        "main: push {r4, lr}\n add lr, pc, #4\n ldr r3, =f\n bx r3\n pop {r4, pc}\nf: bx lr\n"
    )
    assert result == TransferResolution("call", result.targets if result else ())
    assert answer is None
