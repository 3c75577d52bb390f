"""``wcet masked`` where code saves the mask in unusual ways (rules 33, 45 and 49)."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from wcet.cli import main

FILE = "m.json"
ASSEMBLY = """
.syntax unified
.macro fn name, r
.global \\name
.type \\name, %function
\\name:
 push {r4, lr}
 mrs \\r, cpsr
 orr r2, \\r, #0x80
 msr cpsr_fsxc, r2
 add r0, r0, r0
 msr cpsr_fsxc, \\r
 pop {r4, pc}
.size \\name, . - \\name
.endm
 fn in_r3, r3
 fn in_r12, r12
 fn in_lr, lr
 fn main, r8
"""
HEAD = """
int a[64], head;
static inline unsigned state(void) {
    unsigned s; __asm__ volatile("mrs %0, cpsr" : "=r"(s) :: "memory"); return s;
}
static inline void off(void) { __asm__ volatile("cpsid i" ::: "memory"); }
static inline void on(void) { __asm__ volatile("cpsie i" ::: "memory"); }
static inline void set(unsigned s) { __asm__ volatile("msr cpsr_c, %0" :: "r"(s) : "memory"); }
#define FAR __attribute__((noinline))
#define WORK for (int i = 0; i < 64; i++) a[i] += i
"""
FORMS = {
    "tested": """
        void main(void) {
            unsigned s = state(); off(); head++; if (!(s & 0x80)) on();
            WORK;
            s = state(); off(); head--; if (!(s & 0x80)) on();
        }""",
    "the bit alone": """
        FAR unsigned save(void) { unsigned s = state() & 0x80; off(); return s; }
        FAR void restore(unsigned s) { set((state() & ~0x80u) | s); }
        void main(void) { unsigned s = save(); head++; restore(s); WORK;
                          s = save(); head--; restore(s); }""",
    "nested": """
        FAR unsigned save(void) { unsigned s = state(); set(s | 0x80); return s; }
        FAR void restore(unsigned s) { set(s); }
        FAR void inner(void) { unsigned s = save(); a[0]++; restore(s); }
        void main(void) { unsigned s = save(); head++; inner(); restore(s); WORK;
                          s = save(); head--; restore(s); }""",
    "in structures": """
        struct lock { unsigned word, flags; } one, two;
        FAR void lock(struct lock *l) { unsigned s = state(); off(); l->flags = s; l->word = 1; }
        FAR void unlock(struct lock *l) { l->word = 0; set(l->flags); }
        void main(void) { lock(&one); lock(&two); head++; unlock(&two); unlock(&one); WORK;
                          lock(&two); head--; unlock(&two); }""",
    "a truth value": """
        FAR int disable(void) { int was = !(state() & 0x80); off(); return was; }
        FAR void enable(int was) { if (was) on(); }
        void main(void) { int w = disable(); head++; enable(w); WORK;
                          w = disable(); head--; enable(w); }""",
}
BUILDS = (("arm1136jf-s", False, "-O2"), ("cortex-a8", True, "-Os"), ("arm1136jf-s", False, "-O1"))


def masked(elf: Path, folder: Path, facts: str, *more: str) -> dict[str, Any]:
    """The document of ``wcet masked``; without an interrupt entry, the result is partial."""
    (folder / "k.facts").write_text(facts)
    named = ["--facts", str(folder / "k.facts"), "--json", str(folder / FILE)]
    main(["masked", str(elf), *named, "--quiet", "--no-cache", *more])
    found: dict[str, Any] = json.loads((folder / FILE).read_text())
    found["not_bounded"] = [one for one in found["not_bounded"] if one["entry"] != "interrupt"]
    return found


@pytest.mark.slow("analyses each function of a program")
@pytest.mark.parametrize("thumb", [False, True])
def test_a_mask_may_be_saved_in_any_register(thumb: bool, tmp_path: Path) -> None:
    """Also in one that other modes have another of."""
    elf = build(
        f"{'.thumb' if thumb else '.arm'}\n{ASSEMBLY}",
        language="asm",
        thumb=thumb,
        cpu="cortex-a8" if thumb else "arm1136jf-s",
    )
    platform = "cubieboard" if thumb else "kzm"
    found = masked(elf, tmp_path, "", "--everywhere", "--entry", "main", "--platform", platform)
    names = {region["calls"][0] for region in found["regions"]}
    assert names == {"in_r3", "in_r12", "in_lr", "main"}
    assert not found["not_bounded"]
    assert not any("mode:" in text for text in found["assumptions"])


@pytest.mark.slow("compiles and analyses programs")
@pytest.mark.parametrize(("form", "way"), spread(product(FORMS, range(len(BUILDS))), 8))
def test_a_service_that_begins_unmasked_has_short_regions(
    form: str, way: int, tmp_path: Path
) -> None:
    """The loop between them is in none."""
    cpu, thumb, optimise = BUILDS[way]
    elf = build(HEAD + FORMS[form], cpu=cpu, thumb=thumb, optimise=optimise)
    said = "main begins unmasked\nregion all from 0x8000 to 0x9fff is cached and fixed\n"
    named = ("--entry", "main", "--platform", "cubieboard" if thumb else "kzm")
    found = masked(elf, tmp_path, said, *named)
    assert not found["not_bounded"]
    longest = max(region["cycles"] for region in found["regions"])
    assert any("main begins unmasked" in text for text in found["assumptions"])
    whole = masked(elf, tmp_path, said.partition("\n")[2], *named)
    assert max(region["cycles"] for region in whole["regions"]) > 1.5 * longest


@pytest.mark.slow("compiles and analyses a program")
def test_functions_that_restore_masks_are_followed_everywhere(tmp_path: Path) -> None:
    elf = build(HEAD + FORMS["nested"])
    found = masked(elf, tmp_path, "", "--everywhere", "--entry", "main", "--platform", "kzm")
    regions = {tuple(region["calls"]) for region in found["regions"]}
    assert regions == {("main", "save")}
    assert {one["entry"] for one in found["not_bounded"]} == {"save", "restore"}


def test_an_exception_does_not_begin_unmasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = build(HEAD + FORMS["tested"].replace("main", "vector_svc"))
    said = "vector_svc begins unmasked\n"
    masked(elf, tmp_path, said, "--entry", "syscall", "--platform", "kzm")
    assert "interrupts are masked when control gets to" in capsys.readouterr().out


def test_each_loop_without_a_bound_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loops = """
        volatile int end;
        void main(void) {
            off(); for (int i = 0; i < end; i++) a[i & 63]++; on();
            off(); for (int i = 0; i < end; i++) a[i & 31]--;
            for (int i = 0; i < end; i++) a[i & 15] ^= i; on();
        }"""
    masked(build(HEAD + loops), tmp_path, "", "--entry", "main", "--platform", "kzm")
    lines = [
        one for one in capsys.readouterr().out.splitlines() if one.startswith("not bounded: m")
    ]
    assert len(lines) == 3
    assert all("the loop has no bound" in line for line in lines)


def test_a_named_entry_needs_no_interrupt_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interrupt path serves the latency only, which is then not there."""
    elf = build(HEAD + FORMS["tested"])
    file = tmp_path / FILE
    named = ["--entry", "main", "--platform", "kzm", "--no-facts", "--json", str(file)]
    assert main(["masked", str(elf), "--quiet", "--no-cache", *named]) == 0
    document = json.loads(file.read_text())
    assert (document["partial"], document["latency_cycles"]) == (False, None)
    assert "no latency: the interrupt path has no bound: " in capsys.readouterr().out
    assert main(["masked", str(elf), "--quiet", "--no-cache", *named, "--handler", "main"]) == 2
