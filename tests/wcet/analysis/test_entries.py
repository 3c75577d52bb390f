"""An unknown entry is refused, and the error names functions of similar spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.assumptions import S5
from tests.testing.quoll.building import build
from tests.testing.quoll.overlays import overlaid
from tests.testing.wcet.interrupts import kernel
from tests.testing.wcet.programs import CODE, bound
from wcet.cli import main

SOURCE = "unsigned left;\nint main(void) { return left = 0; }\nvoid handler(void) { left++; }\n"


@pytest.fixture(scope="module")
def elf() -> Path:
    return kernel(SOURCE)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main([str(a) for a in arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        ("sycall", "syscall"),
        ("data_abort", "data-abort"),
        ("vector_iqr", "vector_irq"),
        ("al", "all"),
    ],
)
def test_entries_of_the_platform_and_symbols_are_offered(
    elf: Path, capsys: pytest.CaptureFixture[str], entry: str, meant: str
) -> None:
    said = refusal(capsys, "analyse", elf, "--platform", "kzm", "--entry", entry, "--quiet")
    assert f"did you mean {meant}" in said
    assert "platform kzm knows syscall, " in said


@pytest.mark.parametrize("command", ["cfg", "loops", "path", "analyse"])
def test_every_command_offers_symbols(
    elf: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert "did you mean handler" in refusal(capsys, command, elf, "--entry", "handlr")


def test_an_entry_whose_symbols_are_not_there_offers_those_like_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = "int vector_swi(void) { return 1; }\nint main(void) { return vector_swi(); }\n"
    said = refusal(
        capsys, "analyse", build(source), "--platform", "kzm", "--entry", "syscall", "--quiet"
    )
    assert "none of the symbols vector_svc exists" in said
    assert "with --entry; did you mean vector_swi?" in said


def test_nothing_is_offered_where_nothing_is_alike(
    elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(capsys, "analyse", elf, "--platform", "kzm", "--entry", "q9", "--quiet")
    assert "did you mean" not in said
    assert "write 0xADDRESS" in said


def test_a_vector_in_an_overlay_is_refused_with_its_sections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = overlaid(tmp_path)
    said = refusal(capsys, "analyse", elf, "--platform", "kzm", "--entry", "undefined", "--quiet")
    assert ".first, .second overlay each other at 0xffff0004" in said
    assert "--raw FILE@ADDRESS" in said


def test_a_stripped_image_is_searched_for_its_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    text = "main: b h\n b h\n ldr pc, =h\n b h\n b h\n nop\n ldr pc, =h\n b h\nh: bx lr\n.ltorg\n"
    source = f".arm\n.global main\n{text}"
    elf = build(source, "-Wl,-Ttext=0xf0010000", "-s", language="S")
    said = refusal(capsys, "analyse", elf, "--platform", "kzm", "--entry", "syscall", "--quiet")
    assert "a table of vectors has it at --entry 0xf0010008" in said
    assert main(["analyse", str(elf), "--platform", "kzm", "--entry", "0xf0010008", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("body", "assumed"),
    [("return a ? 3 : 4;", False), ("int *volatile p = (int *)&a; return p ? 3 : 4;", True)],
)
def test_the_assumptions_of_counts_in_an_entry_without_loops(body: str, *, assumed: bool) -> None:
    """Counts of an execution limit edges, and no loop names their assumptions."""
    elf = build(f"int main(unsigned a) {{ {body} }}", optimise="-O0", link=(CODE,))
    assert (S5.of() in bound(elf).entries["main"].assumptions) is assumed
