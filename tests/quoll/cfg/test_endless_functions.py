"""Endless functions: where a path has left all others for good, and nothing behind needs a fact."""

from __future__ import annotations

from quoll.cfg.endless_functions import endless_functions
from tests.testing.quoll.building import address
from tests.testing.quoll.sketch import assemble, extracted

SOURCE = """
.type panic, %function
.type print, %function
.type halt, %function
.type leave, %function
.type get, %function
.type both, %function
main:   push {r4, lr}
        bl get
        cmp r0, #1
        bleq panic
        cmp r0, #2
        bleq leave
        bl both
        pop {r4, pc}
get:    push {r4, lr}
        cmp r0, #0
        blne panic
        pop {r4, pc}
both:   bx lr
panic:  bl print
        bl both
        bl halt
print:  push {r4, lr}
        blx r3
        pop {r4, pc}
halt:   b halt
leave:  push {r4, lr}
        rfeia sp!
"""


def test_the_first_endless_function_is_named_with_what_it_hides() -> None:
    """Unknown calls come back; functions that leave by an exception return are not endless."""
    image = assemble(SOURCE)
    program = extracted(image)
    unresolved = {one.addr: one for one in program.unresolved}
    main = address(image, "main")
    (found,) = endless_functions(program.functions, main, unresolved)
    assert found.entry == address(image, "panic")
    assert found.behind == {address(image, name) for name in ("panic", "print", "halt")}
    assert endless_functions(program.functions, found.entry, unresolved) == ()
