"""The bound of a path with a context switch in it: up to the switch, and from behind its call."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.errors import WcetError
from quoll.results.results_store import ResultsStore
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from tests.testing.quoll.switches import ARM, CALLER, CPU, HEAD, THUMB
from tests.testing.wcet.stated import AT, bounded
from wcet.platforms.platform_model import file_of

SHAPES = [(shape, False) for shape in ARM] + [(shape, True) for shape in THUMB]


def program(body: str, *, thumb: bool) -> Path:
    mode = ".thumb" if thumb else ".arm"
    line = ".balign 64"  # so that its cache lines have no other code
    text = f"{HEAD}{mode}\n{line}\nbegin switch\n{body}\n.size switch, . - switch\n.ltorg\n"
    text += f"{line}\n{CALLER}"
    return build(text, AT, language="asm", cpu=CPU, thumb=thumb)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(("shape", "thumb"), spread(SHAPES, 6))
def test_every_shape_has_a_bound_after_one_fact(shape: str, thumb: bool, tmp_path: Path) -> None:
    elf = program((THUMB if thumb else ARM)[shape], thumb=thumb)
    with pytest.raises(WcetError, match=r"switch\+"):
        bounded(elf, tmp_path, "", "main")
    result = bounded(elf, tmp_path, "switch switches context\n", "main", "switch", "after")
    whole, switch, after = (result.entries[name] for name in ("main", "switch", "after"))
    assert whole.cycles > switch.cycles + after.cycles - 500
    assert any("switch switches context" in text for text in map(str, whole.assumptions))


@pytest.mark.slow("several whole analyses")
def test_a_switch_that_is_called_finds_other_caches_than_an_entry(tmp_path: Path) -> None:
    """The platform's lines held at an entry do not hold where the function is called."""
    elf = program(ARM["stack pointer"], thumb=False)
    held, text = tmp_path / "held.toml", file_of("cubieboard").read_text()
    held.write_text(text.replace("[caches.l1i]\n", '[caches.l1i]\nheld = ["switch..main"]\n'))
    cycles = {
        platform: [
            entry.cycles
            for entry in bounded(
                elf, tmp_path, "switch switches context\n", "main", "switch", platform=platform
            ).entries.values()
        ]
        for platform in ("cubieboard", str(held))
    }
    (main, switch), (main_held, switch_held) = cycles.values()
    assert main_held == main
    assert switch_held < switch


@pytest.mark.slow("several whole analyses")
def test_a_stored_caller_of_a_switch_has_the_facts_about_counts_in_it(tmp_path: Path) -> None:
    """The bound of the switch, which is in the costs of its caller, depends on them."""
    body, loads = "push {r4, lr}\n", "ldr r2, [r3]\n" * 8
    for place in ("one", "two"):
        body += f"cmp r0, #0\nbeq 1f\n{place}:\n{loads}1:\n"
    elf = program(f"{body}ldr sp, [r1]\npop {{r4, pc}}", thumb=False)
    facts, store = "switch switches context\n", ResultsStore(tmp_path / "store")
    excluded = f"{facts}one conflicts with two in switch\n"
    less, more = (
        bounded(elf, tmp_path, text, "main", store=store).entries["main"].cycles
        for text in (excluded, facts)
    )
    assert less < more
    assert more == bounded(elf, tmp_path, facts, "main").entries["main"].cycles


def test_switches_that_call_each_other_are_refused(tmp_path: Path) -> None:
    body = "push {r4, lr}\n bl other\n ldr sp, [r1]\n pop {r4, pc}\nbegin other\n push {r4, lr}\n"
    elf = program(f"{body} bl switch\n ldr sp, [r1]\n pop {{r4, pc}}", thumb=False)
    facts = "switch switches context\nother switches context\n"
    with pytest.raises(WcetError, match="call each other"):
        bounded(elf, tmp_path, facts, "main")
