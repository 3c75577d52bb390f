"""Calls through an argument that all callers pass as a constant are resolved without a fact."""

from __future__ import annotations

import pytest

from quoll.cfg.cfg import Program
from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.quoll.building import address, build

SOURCE = """
#define N __attribute__((noinline))
volatile int port; int (*kept)(void); static void *lists[4];
N static int uart(void) { return port & 0xff; }
N static int keys(void) { return port & 0x7f; }
N static int third(void) { return port + 3; }
N int pump(int n, int (*get)(void)) { int sum = 0; while (n-- > 0) sum += get(); return sum; }
N int twice(int (*get)(void)) { port++; return pump(2, get) + 1; }
N int each(int n, int (*get)(void)) { return n ? get() + each(n - 1, get) : get() + port; }
int constants(void) { return port & 1 ? pump(16, uart) : pump(3, keys) + 1; }
int chain(void) { return port & 1 ? twice(uart) : twice(port & 2 ? keys : third) + 1; }
int recursion(void) { return each(3, keys) + 1; }
int loaded(void) { return port & 1 ? pump(16, uart) : pump(3, kept) + 1; }
int result(void) { int (*f)(void) = (int (*)(void))pump(1, uart); return pump(2, f) + 1; }
int main(void) { return constants() + chain() + recursion() + loaded() + result(); }
"""
BUILDS = {
    "arm": Image.load(build(SOURCE)),
    "thumb": Image.load(build(SOURCE, thumb=True, cpu="cortex-a8", optimise="-Os")),
}


def called(program: Program) -> set[str]:
    """The functions that indirect calls lead to."""
    blocks = (block for cfg in program.functions.values() for block in cfg.blocks)
    indirect = (block for block in blocks if block.last.target is None)
    return {program.functions[callee].name for block in indirect for callee in block.calls}


@pytest.mark.parametrize("build_name", BUILDS)
@pytest.mark.parametrize(
    ("entry", "callees"),
    [
        ("constants", {"uart", "keys"}),
        ("chain", {"uart", "keys", "third"}),
        ("recursion", {"keys"}),
    ],
)
def test_constants_of_all_callers_are_the_targets(
    entry: str, callees: set[str], build_name: str
) -> None:
    image = BUILDS[build_name]
    program = extract(image, [address(image, entry) | (build_name == "thumb")])
    assert not program.unresolved
    assert called(program) == callees


@pytest.mark.parametrize("build_name", BUILDS)
@pytest.mark.parametrize("entry", ["loaded", "result", "pump", "main"])
def test_one_caller_that_passes_another_word_leaves_it_open(entry: str, build_name: str) -> None:
    """A loaded word, the result of a call, an entry of which no caller is known."""
    image = BUILDS[build_name]
    program = extract(image, [address(image, entry) | (build_name == "thumb")])
    assert any(image.place(u.addr).split("<")[1].startswith("pump") for u in program.unresolved)


def test_a_function_that_is_an_entry_too_is_open() -> None:
    image = BUILDS["arm"]
    entries = [address(image, name) for name in ("constants", "pump")]
    (call,) = extract(image, entries).unresolved
    assert image.place(call.addr).split("<")[1].startswith("pump")
