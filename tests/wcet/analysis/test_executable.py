"""Instructions that the core lacks, or that have no meaning, are refused by name (rule 47)."""

from pathlib import Path

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.errors import ControlFlowError, TimingError
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog


def elf(instruction: str, cpu: str) -> Path:
    text = f".text\n.global main\n.arm\nmain: {instruction}\nbx lr\n"
    return build(text, language="asm", cpu=cpu, link=(CODE,))


def forced(path: Path, platform: str) -> AnalysisResult:
    bounds = BoundOptions(budget=Budget(seconds=4), workers=1)
    options = AnalysisOptions(
        entries=("main",),
        platform=platform,
        l2=None,
        facts=(),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=bounds,
        force_core=True,
    )
    return analyse(path, options, StageLog(verbose=False))


LACKING = {  # encodings, as no assembler takes them for the core
    "lda r0, [r1]": (0xE1910C9F, "ARMv8"),
    "vfma.f32 s0, s1, s2": (0xEEA00A81, "VFPv4"),
    "eret": (0xE160006E, "Virtualization"),
    "sdiv r0, r1, r2": (0xE710F211, "integer division"),
}


@pytest.mark.parametrize(("cpu", "platform"), [("arm1136jf-s", "kzm"), ("cortex-a8", "cubieboard")])
@pytest.mark.parametrize("text", LACKING)
def test_what_the_core_lacks_is_refused_by_name(text: str, cpu: str, platform: str) -> None:
    word, extension = LACKING[text]
    with pytest.raises(TimingError, match=rf"0xf0010000 .*{text.split()[0]}.*{extension}"):
        bound(elf(f".inst {word:#x}", cpu), platform=platform)


def test_what_a_forced_core_has_is_listed() -> None:
    result = forced(elf(".inst 0xe1910c9f", "cortex-a8"), "cubieboard")
    assert any("has ARMv8, which lda r0, [r1] at" in text for text in map(str, result.assumptions))


def test_what_later_revisions_have_is_listed() -> None:
    result = bound(elf(".inst 0xf57ff01f", "arm1136jf-s"))
    assert any("ARMv6K, which clrex" in text for text in map(str, result.assumptions))


@pytest.mark.parametrize("word", [0xE10FF000, 0x114FF000, 0xE00F0291])
def test_unpredictable_forms_are_refused_by_name(word: int) -> None:
    """mrs pc, a conditional mrs pc, and mul pc."""
    with pytest.raises(ControlFlowError, match="is UNPREDICTABLE"):
        bound(elf(f".inst {word:#x}", "arm1136jf-s"))


# Code at g is a Thumb function that returns, and an ARM instruction before a loop
BOTH_STATES = """
.text
.arm
.global main
.type main, %function
main: mov r6, lr
    ldr r0, =g+1
    mov r2, #0
    mvn r4, r0
    ldr r3, =200
    {jump}
    .ltorg
    .balign 4
g: .word 0xe0004730
    subs r3, r3, #1
    bne g
    bx r6
"""
JUMPS = ("mov pc, r0", "add pc, r0, r2", "orr pc, r0, #0", "mvn pc, r4", "sub pc, r0, #0")


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("jump", JUMPS)
def test_data_processing_interworks_from_version_7_on(jump: str) -> None:
    """A2.3.1: before it, a write to the pc stays in ARM state (rule 47)."""
    source = BOTH_STATES.format(jump=jump)
    old = bound(build(source, language="asm", cpu="arm1136jf-s", link=(CODE,)))
    assert [found.bound for found in old.entries["main"].bounds] == [200]
    new = build(source, language="asm", cpu="cortex-a8", link=(CODE,))
    assert not bound(new, platform="cubieboard").entries["main"].bounds
