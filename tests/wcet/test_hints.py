"""A hint is a fact that the next run accepts, in the user's terms.

Hints of errors, of the first hour's firmware in each language, and of generated firmware.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.harness.cases import spread
from tests.testing.programs import needs
from tests.testing.quoll.building import build
from tests.testing.wcet.first_hour import build_handler, missing_compiler
from tests.testing.wcet.generated_firmware import BUILDS, build_generated, firmware
from tests.testing.wcet.generated_hour import hints_fed_back
from wcet.cli import main

ENTRIES = ("walk", "frame", "global", "copies", "nested")
SOURCE = """\
struct item { struct item *next; int value; } *volatile items;
struct state { int left, step; } state; volatile int out;
#define UART (*(volatile unsigned *)0x44E09014)
static inline void put(int c) { while (!(UART & 32)) ; out = c; }
int walk(void) {
    int s = 0; for (struct item *at = items; at; at = at->next) s += at->value; return s;
}
int frame(int *q) {
    int a[8]; __asm__ volatile("" : "=m"(a));
    while (a[3] != a[4]) { a[3] += *q; __asm__ volatile("" : "+m"(a)); out = 2; } return 1;
}
int global(int *q) { while (state.left) { state.left -= state.step; out = *q; } return 0; }
void copies(const char *text) { put('>'); while (*text) put(*text++); put(10); }
int nested(int n, volatile int *p) {
    int s = 0; for (int i = 0; i != n; i++) while (p[i]) s += out; return s;
}
int main(void) { return 0; }
"""
HINT = re.compile(r"add '(loop [^']*) at most N'(?:, or '(list at [^']*) has at most N elements')?")
INTERNAL = re.compile(r"leaf_|_r1?\d\b|0x1\*|/tmp/|meanwhile")


@pytest.mark.slow("several whole analyses")
def test_hints_are_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All together bound every loop; a list as well as a number."""
    elf = build(SOURCE, "-fno-ipa-cp", optimise="-O2", link=("-Wl,-Ttext=0xf0010000",))
    options = ["analyse", str(elf), "--platform", "kzm", "--quiet", "--no-cache", "--no-facts"]
    options += [option for entry in ENTRIES for option in ("--entry", entry)]
    assert main(options) == 6
    said = capsys.readouterr().err
    assert not INTERNAL.search(said), said
    found = HINT.findall(said)
    assert len(found) >= len(ENTRIES) + 2, said
    for chosen in (0, 1):
        numbers = [f"{loop} at most 9" for loop, listed in found if not (chosen and listed)]
        lists = [f"{listed} has at most 9 elements" for _, listed in found if chosen and listed]
        assert bool(lists) is bool(chosen)
        facts = tmp_path / f"{chosen}.facts"
        facts.write_text("\n".join(dict.fromkeys((*numbers, *lists, ""))))
        assert main([*options, "--facts", str(facts)]) == 0, capsys.readouterr().err


HANDLERS = ("gcc -O0 arm", "gcc -Os thumb", "clang -O2 arm", "rustc -O2 arm", "rustc -Os thumb")
BUILT = tuple(name for name in HANDLERS if missing_compiler(name) is None)
SEEDS = (104, 107, 108)
STRIDE = 7  # of builds, as in the campaign


@pytest.mark.slow("whole analyses")
@pytest.mark.parametrize("name", spread(BUILT, 2))
def test_hints_about_the_handler_are_accepted(name: str, tmp_path: Path) -> None:
    build_handler(name, tmp_path)
    _, errors = hints_fed_back(tmp_path, "handler")
    assert not errors


@pytest.mark.slow("whole analyses")
@needs("clang")
@pytest.mark.parametrize("seed", spread(SEEDS, 1))
def test_hints_about_generated_firmware_are_accepted(seed: int, tmp_path: Path) -> None:
    build_generated(firmware(seed), BUILDS[STRIDE * seed % len(BUILDS)], tmp_path)
    hints, errors = hints_fed_back(tmp_path, "firmware")
    assert hints
    assert not errors


CALLED = """\
struct device { int state; void (*hook)(int); } *device; volatile int out;
static void first(int x) { out = x; }
static void second(int x) { out = -x; }
void irq(int x) { device->hook(x); out = 3; }
int main(void) { device->hook = out ? first : second; return 0; }
"""


def test_a_hint_about_a_call_names_its_place() -> None:
    """So that it can be copied from the error."""
    image = Image.load(build(CALLED, "-fno-optimize-sibling-calls"))
    irq = image.symbol("irq")
    assert irq is not None
    (call,) = extract(image, [irq.addr]).unresolved
    assert re.search(r"so: calls at irq\+0x\w+~\w{8} go to first, second;", call.hint), call.hint
