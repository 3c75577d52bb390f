"""Tables of exception vectors, by their form."""

from __future__ import annotations

import pytest

from quoll.arm.vectors import vector_tables
from tests.testing.quoll.sketch import assemble

TABLE = """
main:   nop
        .balign 32
table:  b h
        ldr pc, =h
        {svc}
        b h
        b h
        {unused}
        ldr pc, =h
        {fiq}
h:      bx lr
        .ltorg
"""


def found(svc: str = "b h", unused: str = "nop", fiq: str = "b h") -> list[int]:
    image = assemble(TABLE.format(svc=svc, unused=unused, fiq=fiq))
    (text,) = (s for s in image.segments if image.is_executable(s.addr))
    return vector_tables(image.read(text.addr, text.size) or b"", text.addr)


@pytest.mark.parametrize("svc", ["b h", "ldr pc, =h", "ldr pc, [pc, #-4080]"])
@pytest.mark.parametrize("unused", ["nop", "b h", ".word 0"])
def test_a_table_is_found(svc: str, unused: str) -> None:
    assert found(svc, unused) == [0x8020]


@pytest.mark.parametrize("svc", ["beq h", "bl h", "nop", "ldr pc, [r0]", ".word 0xffffffff"])
def test_other_code_is_none(svc: str) -> None:
    assert not found(svc)
    assert not found(fiq=svc)
