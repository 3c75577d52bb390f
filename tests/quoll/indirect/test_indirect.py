"""Indirect transfers of compiled and hand-written code, checked against executions."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from quoll.abstract_domain.function_values import BlockCode
from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import Condition, ControlFlow
from quoll.image.image import Image
from quoll.indirect.tables import PathInterpreter, TransferPath
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.growing import (
    C_OPTIONS,
    FUNCTIONS,
    IDIOMS,
    STOP,
    Growing,
    code_at,
    functions,
    grow,
    options,
)
from tests.testing.quoll.sketch import assemble

pytestmark = [
    pytest.mark.slow("builds programs at several levels"),
    pytest.mark.xdist_group("indirect"),
]


def execute(
    image: Image, functions: Mapping[str, Growing], entry: str, arguments: list[int]
) -> tuple[int, list[str]]:
    """Run a function; how many indirect transfers were made, and which were not foreseen."""
    foreseen = {a: r for f in functions.values() for a, r in f.found.items()}
    background = lambda addr: (image.read(addr, 1) or b"\0")[0]  # noqa: E731
    machine = ConcreteMachine(ByteMemory(background=background), lambda op: 0)
    start = functions[entry]
    machine.registers[:4] = arguments
    machine.registers[13:16] = [0x7000_0000, STOP, start.entry]
    machine.thumb = start.thumb
    it: tuple[Condition, ...] = ()
    made = 0
    wrong: list[str] = []
    for _ in range(3000):
        at = machine.registers[15]
        if at == STOP:
            return made, wrong
        raw = code_at(image, at)
        insn = decode(raw, at, machine.thumb, it)
        it = it[1:] or it_conditions(insn)
        machine.step(insn)
        now = machine.registers[15] | machine.thumb
        if (
            insn.flow not in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
            or now & ~1 == insn.next
        ):
            continue
        made += 1
        result = foreseen.get(at)
        if result is not None and result.kind != "return" and now not in result.targets:
            wrong.append(f"{at:#x} went to {now:#x}, not one of {result}")
    raise AssertionError("the execution does not end")


@pytest.mark.slow("compiles and extracts many programs")
@pytest.mark.parametrize("chosen", C_OPTIONS, ids=lambda o: " ".join(map(str, dict(o).values())))
def test_compiled_switches(chosen: tuple[tuple[str, Any], ...]) -> None:
    image, grown = functions("switches.c", FUNCTIONS, chosen)
    unknown = {f"{n}: {u.reason}" for n, f in grown.items() for u in f.unknown.values()}
    assert unknown == {
        "argument: the target depends on r0 as it was when the function was entered"
        if dict(chosen)["optimise"] != "-O0"
        else next(u for u in unknown if u.startswith("argument"))
    }
    rng = random.Random(3)
    made = 0
    for name in FUNCTIONS[:-2]:
        for a in [*range(-5, 22), rng.randrange(1 << 31)]:
            count, wrong = execute(image, grown, name, [a & 0xFFFFFFFF, 5, 0, 0])
            assert not wrong, name
            made += count
    assert made > 400


@pytest.mark.slow("compiles and extracts programs")
@pytest.mark.parametrize("chosen", C_OPTIONS, ids=lambda o: " ".join(map(str, dict(o).values())))
def test_tables_are_as_long_as_their_switch(chosen: tuple[tuple[str, Any], ...]) -> None:
    """Seven to eleven entries each: an index range that is too wide shows here."""
    _, grown = functions("switches.c", FUNCTIONS, chosen)
    for name, low, high in (
        ("dense", 7, 7),
        ("offset", 6, 10),
        ("masked", 7, 8),
        ("bounded", 5, 5),
    ):
        sizes = [len(r.targets) for r in grown[name].found.values() if r.kind != "return"]
        assert sizes
        assert all(low <= size <= high for size in sizes), (name, sizes)


def test_saved_registers_are_verified() -> None:
    for chosen in C_OPTIONS:
        _, grown = functions("switches.c", FUNCTIONS, chosen)
        for name, function in grown.items():
            assert function.values.preserved() == frozenset([*range(4, 12), 13]), name


def test_idioms() -> None:
    image, grown = functions("idioms.S", (*IDIOMS, "leaf", "main"), options())
    assert not any(f.unknown for f in grown.values()), {n: f.unknown for n, f in grown.items()}
    shape = {
        name: sorted((r.kind, len(r.targets), r.table is not None) for r in f.found.values())
        for name, f in grown.items()
    }
    assert shape["computed"] == [("jump", 4, False), ("return", 0, False)]
    assert shape["offsets"] == [("jump", 4, True), ("return", 0, False)]
    assert shape["early"] == [("jump", 3, True), ("return", 0, False)]
    assert shape["pushed"] == [("jump", 2, False), ("return", 0, False), ("return", 0, False)]
    assert shape["moved"] == [("return", 0, False)]
    assert shape["split"] == [("jump", 4, True), ("return", 0, False)]
    assert shape["linked"] == [("call", 2, True), ("return", 0, False)]
    assert ("jump", 1, False) in shape["tail"]
    for name in IDIOMS:
        for a in range(8):
            assert execute(image, grown, name, [a, a * 3, 0, 0])[1] == []


WRITABLE_TABLE = """
int g(int x) { return x; }
int h(int x) { return -x; }
int (*table[4])(int) = {g, h, g, h};
int main(unsigned i, int x) { return table[i & 3](x) + 1; }
"""
CLOBBERED = """
        .text
        .global main
main:   push    {r4, lr}
        mov     r4, #0
        ldr     lr, [r0]
        str     r1, [sp, #4]
        pop     {r4, pc}
"""


def test_writable_table_is_not_believed() -> None:
    (unknown,) = grow(WRITABLE_TABLE, "c").unknown.values()
    assert "does not come from constants" in unknown.reason


def test_overwritten_return_address_is_no_return() -> None:
    (unknown,) = grow(CLOBBERED, "asm").unknown.values()
    assert "depends on r1" in unknown.reason


def test_lost_register_is_not_preserved() -> None:
    source = ".text\n.global main\nmain: mov r5, #1\n add sp, sp, #8\n bx lr\n"
    assert grow(source, "asm").values.preserved() == frozenset({4, 6, 7, 8, 9, 10, 11})


@pytest.mark.slow("compiles and extracts many programs")
@pytest.mark.parametrize("count", [800, 6000])  # the second: more at once than all may be
def test_the_work_for_a_transfer_behind_much_code_is_limited(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Each instruction changes the next one's input; a path could start at any of them."""
    some = range(count)
    lines = "".join(f" eor r4, r4, r1, ror #{1 + n % 31}\n str r4, [sp, r2]\n" for n in some)
    image = assemble(f"main: push {{r4, lr}}\n sub sp, sp, #64\n{lines} ldr pc, [sp, r4]\n")
    followed: list[int] = []
    follow = PathInterpreter.follow

    def counting(self: PathInterpreter, path: TransferPath, *more: Any) -> Any:
        followed.append(sum(len(piece.insns) for piece in path.blocks))
        return follow(self, path, *more)

    monkeypatch.setattr(PathInterpreter, "follow", counting)
    symbol = image.symbol("main")
    assert symbol is not None
    grown = Growing(image, symbol.addr, False, BlockCode())
    assert len(grown.unknown) == 1
    assert 0 < len(followed) < 20
