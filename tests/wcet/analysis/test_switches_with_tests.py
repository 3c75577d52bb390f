"""Functions that switch contexts and test for interrupts, called before and behind acknowledgements
(rules 21, 58)."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.inlining.sharing import SummarySettings
from tests.testing.wcet.interrupts import kernel
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog
from wcet.cli import main

# switch() tests up to 200 times, which takes more than 20,000 cycles while no interrupt is pending
SOURCE = """
#define LOW  (*(volatile unsigned *)0xf8000058u)
#define HIGH (*(volatile unsigned *)0xf800005cu)
unsigned memory[64], slot;
void switch_to(void);
__asm__(".text\\n.type switch_to, %function\\n.global switch_to\\n"
"switch_to: push {r4, r5, r6, lr}\\n mov r4, #200\\n ldr r5, =0xf8000058\\n INSIDE\\n"
"1: ldr r0, [r5]\\n ldr r6, [r5, #4]\\n orrs r0, r0, r6\\n bne 2f\\n subs r4, r4, #1\\n bne 1b\\n"
"2: AT_THE_END\\n ldr r1, =slot\\n ldr sp, [r1]\\n pop {r4, r5, r6, pc}\\n .ltorg\\n"
".size switch_to, . - switch_to\\n");
__attribute__((noinline)) void wrapper(unsigned n) { memory[n & 63] = n; switch_to(); memory[0]++; }
int main(unsigned a, unsigned b) { BODY return 0; }
__attribute__((noinline)) void handler(void) { unsigned line = VECTOR; ACKNOWLEDGE = line; }
"""
ACKNOWLEDGES = "memory[0] = VECTOR;"
READS_VECTOR = "ldr r0, [r5, #-0x18]\\n ldr r1, =memory\\n str r0, [r1]"  # acknowledges, too
LOOP = "for (int i = 0; i < 200; i++) if (LOW | HIGH) break;"


def cycles(
    folder: Path,
    body: str,
    inside: str = "nop",
    end: str = "nop",
    settings: SummarySettings | None = None,
) -> int:
    """The bound of the system call, on a KZM whose vector acknowledges when it is read."""
    board, facts = folder / "board.toml", folder / "switch.facts"
    controller = ("--controller", "avic@0xF8000000", "--output", str(board))
    assert main(["platform", "new", "board", "--from", "kzm", *controller]) == 0
    facts.write_text("switch_to switches context\n")
    source = SOURCE.replace("BODY", body).replace("INSIDE", inside).replace("AT_THE_END", end)
    options = AnalysisOptions(
        ("syscall",),
        str(board),
        facts=(facts,),
        summary_settings=settings or SummarySettings(),
    )
    result = analyse(kernel(source), options, StageLog(verbose=False))
    found = result.entries["syscall"].cycles
    assert isinstance(found, int)
    return found


@pytest.mark.slow("whole analyses")
@pytest.mark.parametrize("body", ["switch_to();", "if (LOW | HIGH) return 1; switch_to();"])
def test_tests_in_a_switch_see_an_interrupt_that_nothing_acknowledged(
    body: str, tmp_path: Path
) -> None:
    assert cycles(tmp_path, body) < 12_000


@pytest.mark.slow("whole analyses")
@pytest.mark.parametrize(
    "body",
    [
        f"{ACKNOWLEDGES} switch_to();",
        f"if (LOW | HIGH) {{ {ACKNOWLEDGES} }} switch_to();",
        f"{ACKNOWLEDGES} wrapper(b);",
    ],
)
def test_behind_an_acknowledgement_tests_in_a_switch_may_show_none(
    body: str, tmp_path: Path
) -> None:
    assert cycles(tmp_path, body) > 20_000


@pytest.mark.slow("whole analyses")
@pytest.mark.parametrize("body", [f"switch_to(); {LOOP}", "switch_to(); switch_to();"])
def test_a_switch_may_acknowledge(body: str, tmp_path: Path) -> None:
    """Tests behind it, in its caller or in the next one, may show none."""
    assert cycles(tmp_path, body, end=READS_VECTOR) > 20_000


@pytest.mark.slow("whole analyses")
def test_a_switch_acknowledges_before_its_own_tests(tmp_path: Path) -> None:
    assert cycles(tmp_path, "switch_to();", inside=READS_VECTOR) > 20_000


@pytest.mark.slow("whole analyses")
def test_a_summary_does_not_hide_that_a_switch_has_tests(tmp_path: Path) -> None:
    body = f"if (a == 1) {{ wrapper(b); return 0; }} {ACKNOWLEDGES} wrapper(a);"
    settings = SummarySettings(contexts=0, least=2, preemptible=0)
    assert cycles(tmp_path, body, settings=settings) > 20_000
