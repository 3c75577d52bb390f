"""Extraction of Thumb code, and of code that changes the instruction set."""

from __future__ import annotations

import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.quoll.building import build
from tests.testing.quoll.invariants import verify_program
from tests.testing.quoll.sketch import assemble, drawn, extracted, sketch


def test_thumb_with_it_blocks_compares_and_interworking() -> None:
    drawn(
        """
        main:   push {r4, lr}
                cbz r0, out
                cmp r1, #0
                it eq
                popeq {r4, pc}
                blx helper
        out:    pop {r4}
                pop {r1}
                bx r1
                .balign 4
                .arm
                .type helper, %function
        helper: bx lr
        """,
        """
        main
          main (2): fallthrough main+4, taken out
          main+4 (3): returns, fallthrough main+10
          main+10 (1): calls helper, across out
          out (3): returns
        helper
          helper (1): returns
        """,
        thumb=True,
    )


def test_a_veneer_changes_the_instruction_set() -> None:
    drawn(
        """
        main:   bx pc
                nop
                .arm
        arm:    add r0, r0, #1
                bx lr
        """,
        """
        main
          main (1): indirect arm
          arm (2): returns
        """,
        thumb=True,
    )


def test_thumb_bl_inside_its_function_is_a_long_jump() -> None:
    """GCC reaches beyond 2 KiB this way where lr is saved: bl as b, in both directions."""
    image = assemble(
        """
        main:   push {r4, lr}
                cmp r0, #0
                bne x1
                bl x2
        x1:     adds r0, #1
                pop {r4, pc}
        x2:     adds r0, #2
                bl x1
                .size main, . - main
        """,
        thumb=True,
        cpu="arm926ej-s",
    )
    program = extracted(image)
    expected = """
        main
          main (3): fallthrough main+6, taken x1
          main+6 (1): taken x2
          x1 (2): returns
          x2 (2): taken x1
    """
    assert sketch(image, program) == dedent(expected).strip()


@pytest.mark.parametrize("symbols", [True, False])
def test_the_entry_of_the_file_says_that_it_is_thumb_code(tmp_path: Path, symbols: bool) -> None:
    source = ".thumb_func\nmain: push {lr}\nbl f\npop {pc}\n.thumb_func\nf: bx lr\n"
    header = ".syntax unified\n.text\n.balign 4\n.global main\n"
    path = build(header + source, language="S", thumb=True, cpu="cortex-a8")
    if not symbols:
        stripped = tmp_path / "stripped.elf"
        subprocess.run(["arm-none-eabi-strip", "-s", path, "-o", stripped], check=True, timeout=60)
        path = stripped
    image = Image.load(path)
    program = extract(image, [image.entry])
    assert [cfg.thumb for cfg in program.functions.values()] == [True, True]
    assert not program.unresolved


def test_one_helper_serves_several_tables_of_a_function() -> None:
    """At -Os, GCC jumps by byte tables through a function of libgcc."""
    cases = "".join(f"case {n}: d = {n * n}; d = {n}; break; " for n in range(7))
    source = f"""
        volatile int d;
        int main(int x, int y) {{
            switch (x) {{ {cases} default: return 3; }}
            switch (y) {{ {cases} default: return 4; }}
            return 0;
        }}
    """
    path = build(source, optimise="-Os", thumb=True, cpu="arm7tdmi", link=("-lgcc",))
    image = Image.load(path)
    program = extract(image, [image.entry])
    assert not program.unresolved
    assert [len(table.targets) for table in program.jump_tables] == [14]
    verify_program(program)
