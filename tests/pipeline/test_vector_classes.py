"""VFP and NEON: a row for each instruction, and no way to be faster than the unit."""

from __future__ import annotations

from functools import cache

import pytest

from campaigns.encodings import EVERY, Table, holes, tabulated, written
from pipeline.core import load_core
from pipeline.demand import demand
from pipeline.timing_model import CoreProfile
from quoll.arm.decode import decode
from quoll.arm.floating_point import VectorRole, is_double, vector_role
from quoll.arm.insn import Insn
from quoll.errors import TimingError
from quoll.image.image import Image
from tests.testing.quoll.building import TEXT_BASE, build

HALVES = """
    vldr s0, [r1]
    vstr d0, [r1, #4]
    vldm r1!, {s0-s4}
    vstmdb r1!, {d8-d15}
    fldmiax r1, {d0-d3}
    fstmdbx r1!, {d0-d3}
    vmrs r0, fpexc
    vmrs APSR_nzcv, fpscr
    vmsr fpexc, r0
    vmov s0, r1
    vmov r1, s0
    vmov d0, r1, r2
    vmov r1, r2, d0
    vadd.f32 s0, s1, s2
    vadd.f64 d0, d1, d2
    vmla.f32 s0, s1, s2
    vnmul.f64 d0, d1, d2
    vdiv.f32 s0, s1, s2
    vsqrt.f64 d0, d1
    vcmpe.f32 s0, #0
    vcvt.s32.f64 s0, d1
    vcvt.f64.f32 d0, s1
    vmov.f32 s0, s1
    vneg.f64 d0, d1
"""
NEON = """
    vld1.8 {d0-d3}, [r1]!
    vld4.16 {d0[1], d1[1], d2[1], d3[1]}, [r1], r2
    vst3.8 {d0-d2}, [r1]
    vadd.i32 q0, q1, q2
    vadd.f32 q0, q1, q2
    vmull.s32 q0, d2, d3
    vqdmulh.s16 q0, q1, q2
    vrecpe.f32 q0, q1
    vtbl.8 d0, {d1-d4}, d5
    vzip.8 q0, q1
    vmovn.i32 d0, q1
    vshl.i64 q0, q1, #3
    vdup.32 q0, r1
    vmov.32 r0, d1[1]
    vmov.i32 q0, #0
    vfma.f32 q0, q1, q2
"""


@cache
def decoded(text: str, *, thumb: bool) -> tuple[Insn, ...]:
    mode = ".thumb" if thumb else ".arm"
    source = f".syntax unified\n{mode}\n.arch armv7-a\n.fpu neon-vfpv4\n.global main\nmain:\n{text}"
    image = Image.load(build(source, language="asm", thumb=thumb, cpu="cortex-a8"))
    count = len([line for line in text.splitlines() if line.strip()])
    code = image.read(TEXT_BASE, 4 * count)
    assert code is not None
    return tuple(decode(code[4 * i : 4 * i + 4], TEXT_BASE + 4 * i, thumb) for i in range(count))


@pytest.mark.parametrize("thumb", [False, True])
def test_parts(thumb: bool) -> None:
    parts = [vector_role(insn) for insn in decoded(HALVES, thumb=thumb)]
    names = [part and part.name for part in parts]
    assert names == [
        *["REGISTERS"] * 6, *["STATUS"] * 3,
        "FROM_CORE", "TO_CORE", "FROM_CORE", "TO_CORE", *["ARITHMETIC"] * 11,
    ]  # fmt: skip
    parts = [vector_role(insn) for insn in decoded(NEON, thumb=thumb)]
    assert parts[:3] == [VectorRole.ELEMENTS] * 3
    assert parts[12:14] == [VectorRole.FROM_CORE, VectorRole.TO_CORE]
    assert {*parts[3:12], *parts[14:]} == {VectorRole.NEON}


@pytest.mark.parametrize("thumb", [False, True])
@pytest.mark.parametrize("profile", CoreProfile)
def test_each_has_figures(profile: CoreProfile, thumb: bool) -> None:
    for core, text in (("arm1136", HALVES), ("cortex-a8", HALVES), ("cortex-a8", NEON)):
        for insn in decoded(text, thumb=thumb):
            found = demand(load_core(core, profile), insn, aligned=True, aligned8=False)
            assert found.issue > 0, insn.text


def test_no_neon_on_the_older_core() -> None:
    core = load_core("arm1136", CoreProfile.WCET)
    with pytest.raises(TimingError, match=r"no row NEON_INTEGER"):
        demand(core, decoded(NEON, thumb=False)[3], aligned=True, aligned8=False)


@pytest.mark.parametrize("core", ["arm1136", "cortex-a8"])
def test_nothing_is_under_way_after_its_issue(core: str) -> None:
    """The argument of the bounds: results and the unit are waited for in the issue stage."""
    rows = load_core(core, CoreProfile.WCET).rows
    for (name, condition), row in rows.items():
        if name.startswith(("VFP_", "NEON_")):
            assert row.issue >= max((*row.latency, row.memory)), (name, condition)


@pytest.mark.parametrize("core", ["arm1136", "cortex-a8"])
def test_what_is_left_in_the_unit_covers_the_longest_instruction(core: str) -> None:
    rows = load_core(core, CoreProfile.WCET).rows
    left = rows["VFP_OUTSTANDING", "any"].issue
    assert left >= max(row.issue for (name, _), row in rows.items() if name.startswith("VFP_DIV"))


def test_precision() -> None:
    single, double = decoded(HALVES, thumb=False)[13:15]
    assert not is_double(single)
    assert is_double(double)


def test_the_list_of_encodings_has_no_hole() -> None:
    """The encodings with many fixed bits; ``campaigns.encodings`` has random ones of all forms."""
    table: Table = {}
    for thumb in (False, True):
        core = frozenset(["cortex-a8"] if thumb else EVERY)
        raws = written(thumb=thumb)
        assert len(raws) > 80
        tabulated([(raw, "rare", core) for raw in raws], thumb=thumb, table=table)
    assert not holes(table)
    assert {"vmrs", "vmsr", "srs", "rfe", "clrex", "wfe", "bxj", "vldm", "vstm"} <= table.keys()
    assert all(row.decoded == {"yes"} for row in table.values())
