"""Every addressing form of both cores: its cycles by hand, and no form that is not in the table.

Cycles of three sequences whose accesses all hit, worked from the manuals by hand:

    unit    FORM; ldr r8, [r7]            when may the next access begin?
    use     FORM; add r9, r10, RESULT     when is the loaded word ready? (stores: overwrite it)
    base    FORM; add r9, r10, r1, lsl    when is the base there that was written back?

ARM1136: ARM1136 TRM (DDI 0211) and ARM1176 TRM (DDI 0301), 16.10 for single accesses, 16.11 for
pairs, 16.12 for lists, 16.14 for swaps and exclusives. Cortex-A8: TRM (DDI 0344), 16.2, 16.3, 16.8
and table 16-16. Encodings: ARM ARM (DDI 0406C), A5.2.8, A5.2.10, A5.3, A5.5, A6.2, A6.3, A7.6,
A7.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from random import Random

import pytest

from cache.cache_simulator import SimulatedCache
from cache.geometry import CacheGeometry
from cache.policy import ReplacementPolicy
from pipeline import dual_issue
from pipeline.core import load_core
from pipeline.demand import demand
from pipeline.dual_issue import DualStepper
from pipeline.dual_issue_simulator import concrete_machine
from pipeline.maxplus import IDLE, BlockStepper
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus
from pipeline.timing_model import CoreProfile, MemoryLatencies
from quoll.arm.decode import decode
from quoll.arm.insn import PC, AccessKind, Insn, MemoryAccess, ShiftKind
from quoll.errors import InputError
from quoll.image.image import Image
from tests.testing.cache.graphs import at, pool
from tests.testing.quoll.building import TEXT_BASE, build

pytestmark = [pytest.mark.slow("assembles every form"), pytest.mark.xdist_group("forms")]

LATENCIES = MemoryLatencies(60, None, 3, True, True, 8, 13)
ALIGNED8, ALIGNED4 = 0xF0020000, 0xF0020004

# Text of the offset, cycles of the address, and a known divisor of the offset.
OFFSETS = [
    ("#0", 1, 4),
    ("#8", 1, 4),
    ("#-8", 1, 4),
    ("#3", 1, 1),
    ("r2", 1, 1),
    ("r2, lsl #1", 2, 2),
    ("r2, lsl #2", 1, 4),
    ("r2, lsl #3", 2, 4),
    ("r2, lsl #4", 2, 4),
    ("r2, lsl #31", 2, 4),
    ("r2, lsr #1", 2, 1),
    ("r2, lsr #2", 2, 1),
    ("r2, lsr #31", 2, 1),
    ("r2, lsr #32", 2, 1),
    ("r2, asr #2", 2, 1),
    ("r2, asr #32", 2, 1),
    ("r2, ror #1", 2, 1),
    ("r2, ror #2", 2, 1),
    ("r2, ror #31", 2, 1),
    ("r2, rrx", 2, 1),
    ("-r2", 2, 1),
    ("-r2, lsl #1", 2, 2),
    ("-r2, lsl #2", 2, 4),
    ("-r2, lsl #3", 2, 4),
    ("-r2, lsl #4", 2, 4),
    ("-r2, lsr #2", 2, 1),
    ("-r2, asr #2", 2, 1),
    ("-r2, ror #2", 2, 1),
    ("-r2, rrx", 2, 1),
]
INDEXING = ["[r1, {}]", "[r1, {}]!", "[r1], {}"]

# Mnemonic, kind, bytes of one transfer; which offsets and which indexing it has.
ARM = [
    ("ldr r4,", "word", 4, OFFSETS, INDEXING),
    ("ldrb r4,", "narrow", 1, OFFSETS, INDEXING),
    ("str r4,", "store", 4, OFFSETS, INDEXING),
    ("strb r4,", "store", 1, OFFSETS, INDEXING),
    ("ldrt r4,", "word", 4, OFFSETS, INDEXING[2:]),
    ("ldrbt r4,", "narrow", 1, OFFSETS, INDEXING[2:]),
    ("strt r4,", "store", 4, OFFSETS, INDEXING[2:]),
    ("strbt r4,", "store", 1, OFFSETS, INDEXING[2:]),
    *((name, "preload", 1, OFFSETS, INDEXING[:1]) for name in ("pld", "pldw", "pli")),
    *((f"{name} r4,", kind, size, [o for o in OFFSETS if "," not in o[0]], INDEXING)
      for name, kind, size in (("ldrh", "narrow", 2), ("ldrsh", "narrow", 2),
                               ("ldrsb", "narrow", 1), ("strh", "store", 2))),
    *((f"{name} r4, r5,", kind, 8, [o for o in OFFSETS if "," not in o[0]],
       INDEXING) for name, kind in (("ldrd", "pair"), ("strd", "pair store"))),
]  # fmt: skip
T32_OFFSETS = [o for o in OFFSETS if o[0] in ("r2", "r2, lsl #1", "r2, lsl #2", "r2, lsl #3")]
CONSTANT = OFFSETS[:4]
THUMB = [
    *((f"{name}{wide} {register}", kind, size, offsets, indexing)
      for name, kind, size in (("ldr", "word", 4), ("ldrb", "narrow", 1), ("ldrh", "narrow", 2),
                               ("ldrsb", "narrow", 1), ("ldrsh", "narrow", 2), ("str", "store", 4),
                               ("strb", "store", 1), ("strh", "store", 2))
      for wide, register in ((".w", "r4,"), ("", "r4,"))
      for offsets, indexing in ((CONSTANT, INDEXING), (T32_OFFSETS, INDEXING[:1]))),
    *((f"{name}t r4,", kind, size, [CONSTANT[0], CONSTANT[1], CONSTANT[3]], INDEXING[:1])
      for name, kind, size in (("ldr", "word", 4), ("ldrb", "narrow", 1), ("ldrh", "narrow", 2),
                               ("ldrsb", "narrow", 1), ("ldrsh", "narrow", 2), ("str", "store", 4),
                               ("strb", "store", 1), ("strh", "store", 2))),
    *((name, "preload", 1, [*CONSTANT, *T32_OFFSETS], INDEXING[:1])
      for name in ("pld", "pldw", "pli")),
    *((f"{name} r4, r5,", kind, 8, CONSTANT[:3], INDEXING)
      for name, kind in (("ldrd", "pair"), ("strd", "pair store"))),
]  # fmt: skip

Cycles = tuple[int, int, int]  # unit, use, base
# Kind, cycles of the address, and alignment: as documented, and the bound where it differs.
# Words and less: "aligned", or "maybe", if base or offset may be unaligned and only their sum is
# not. Pairs: whether the first address is a multiple of 8.
ARM1136: dict[tuple[str, int, str], tuple[Cycles, Cycles | None]] = {
    ("word", 1, "aligned"): ((2, 4, 3), None),
    ("word", 2, "aligned"): ((3, 5, 4), None),
    ("word", 1, "maybe"): ((3, 4, 3), None),
    ("word", 2, "maybe"): ((4, 5, 4), None),
    ("narrow", 1, "aligned"): ((2, 4, 3), (2, 5, 3)),
    ("narrow", 2, "aligned"): ((3, 5, 4), (3, 6, 4)),
    ("narrow", 1, "maybe"): ((3, 4, 3), (3, 5, 3)),
    ("narrow", 2, "maybe"): ((4, 5, 4), (4, 6, 4)),
    ("store", 1, "aligned"): ((2, 2, 3), None),
    ("store", 2, "aligned"): ((3, 3, 4), None),
    ("store", 1, "maybe"): ((3, 2, 3), None),
    ("store", 2, "maybe"): ((4, 3, 4), None),
    ("preload", 1, "aligned"): ((2, 2, 3), (3, 3, 3)),
    ("preload", 2, "aligned"): ((3, 3, 4), None),
    ("pair", 1, "aligned"): ((2, 4, 3), None),
    ("pair", 2, "aligned"): ((3, 5, 4), None),
    ("pair", 1, "not"): ((3, 5, 3), None),
    ("pair", 2, "not"): ((4, 6, 4), None),
    ("pair store", 1, "aligned"): ((2, 3, 3), None),
    ("pair store", 2, "aligned"): ((3, 4, 4), None),
    ("pair store", 1, "not"): ((3, 3, 3), (3, 4, 3)),
    ("pair store", 2, "not"): ((4, 4, 4), (4, 5, 4)),
}
# The cycle of the last issue. An aligned sum costs the same in every form; an instruction that
# overwrites a stored register may issue beside the store. No credit for the data of a store in E3.
CORTEX_A8: dict[tuple[str, int, str], tuple[Cycles, Cycles | None]] = {
    **{(kind, 1, alignment): ((2, 3, 3), None)
       for kind in ("word", "narrow") for alignment in ("aligned", "maybe")},
    **{(kind, 2, alignment): ((3, 4, 4), None)
       for kind in ("word", "narrow") for alignment in ("aligned", "maybe")},
    **{("store", 1, alignment): ((2, 1, 3), None) for alignment in ("aligned", "maybe")},
    **{("store", 2, alignment): ((3, 2, 4), None) for alignment in ("aligned", "maybe")},
    ("preload", 1, "aligned"): ((2, 1, 3), None),
    ("preload", 2, "aligned"): ((3, 2, 4), None),
    ("pair", 1, "aligned"): ((2, 3, 3), None),
    ("pair", 2, "aligned"): ((3, 4, 4), None),
    ("pair", 1, "not"): ((3, 4, 4), (11, 12, 12)),
    ("pair", 2, "not"): ((4, 5, 5), (12, 13, 13)),
    ("pair store", 1, "aligned"): ((2, 1, 3), (3, 2, 4)),
    ("pair store", 2, "aligned"): ((3, 2, 4), (4, 3, 5)),
    ("pair store", 1, "not"): ((3, 2, 4), (11, 10, 12)),
    ("pair store", 2, "not"): ((4, 3, 5), (12, 11, 13)),
}  # fmt: skip
CORES = {"arm1136": ARM1136, "cortex-a8": CORTEX_A8}
SEQUENCES = {
    "word": ("ldr r8, [r7]", "add r9, r10, r4", "add r9, r10, r1, lsl #1"),
    "pair": ("ldr r8, [r7]", "add r9, r10, r5", "add r9, r10, r1, lsl #1"),
    "store": ("ldr r8, [r7]", "mov r4, #0", "add r9, r10, r1, lsl #1"),
    "pair store": ("ldr r8, [r7]", "mov r5, #0", "add r9, r10, r1, lsl #1"),
}
SEQUENCES |= {"narrow": SEQUENCES["word"], "preload": SEQUENCES["store"]}

# Forms without an address mode: unit, on either core; documented, and the bound. None: no such
# instruction in the ARM state of this core's table.
OTHERS: list[tuple[str, str, tuple[int, int], tuple[int, int]]] = [
    ("swp r4, r5, [r1]", "16.14", (3, 3), (11, 11)),
    ("swpb r4, r5, [r1]", "16.14", (3, 3), (11, 11)),
    ("ldrex r4, [r1]", "16.14", (2, 2), (11, 11)),
    ("strex r4, r5, [r1]", "16.14", (2, 2), (11, 11)),
    ("ldrexb r4, [r1]", "16.14", (3, 4), (11, 11)),
    ("ldrexh r4, [r1]", "16.14", (3, 4), (11, 11)),
    ("ldrexd r4, r5, [r1]", "16.14", (3, 4), (11, 11)),
    ("strexb r4, r5, [r1]", "16.14", (3, 4), (11, 11)),
    ("strexh r4, r5, [r1]", "16.14", (3, 4), (11, 11)),
    ("strexd r6, r4, r5, [r1]", "16.14", (3, 4), (11, 11)),
    ("ldr r4, .+16", "16.10, literal", (2, 2), (2, 2)),
    ("ldrb r4, .+16", "16.10, literal", (2, 2), (2, 2)),
    ("ldrh r4, .+16", "16.10, literal", (2, 2), (2, 2)),
    ("ldrsb r4, .+16", "16.10, literal", (2, 2), (2, 2)),
    ("ldrsh r4, .+16", "16.10, literal", (2, 2), (2, 2)),
    ("ldrd r4, r5, .+16", "16.11, literal", (2, 2), (2, 2)),
    ("srsdb sp!, #19", "16.13", (3, 3), (3, 3)),
    ("vldr s0, [r1, #4]", "VFP", (6, 9), (3, 11)),
    ("vldr d0, [r1, #-4]", "VFP", (6, 9), (3, 11)),
    ("vstr s0, [r1]", "VFP", (6, 9), (3, 31)),
    ("vstr d0, [r1]", "VFP", (6, 9), (3, 31)),
    ("vldmia r1, {d0-d1}", "VFP", (7, 10), (4, 12)),
    ("vldmia r1!, {s0-s6}", "VFP", (9, 12), (6, 14)),
    ("vldmdb r1!, {d0-d7}", "VFP", (13, 16), (10, 18)),
    ("vstmia r1, {d0-d1}", "VFP", (7, 10), (4, 32)),
    ("vstmia r1!, {d0-d15}", "VFP", (22, 25), (19, 47)),
    ("vstmdb r1!, {d0-d3}", "VFP", (9, 12), (6, 34)),
]
NEON = [
    *(f"{name}.{size} {{{registers}}}, [r1]{after}"
      for name in ("vld1", "vst1") for after in ("", "!", ", r2")
      for size, registers in ((8, "d0"), (16, "d0-d1"), (32, "d0-d2"), (64, "d0-d3"), (8, "d0[1]"),
                              (16, "d0[1]"), (32, "d0[1]"))),
    *(f"{name}.{size} {{{registers}}}, [r1]{after}"
      for kind in ("vld", "vst") for after in ("", "!", ", r2")
      for name, size, registers in (
          (f"{kind}2", 8, "d0-d1"), (f"{kind}2", 8, "d0-d3"), (f"{kind}3", 8, "d0-d2"),
          (f"{kind}4", 8, "d0-d3"),
          *((f"{kind}{n}", size, ", ".join(f"d{i}[1]" for i in range(n)))
            for n in (2, 3, 4) for size in (8, 16, 32)))),
]  # fmt: skip


@cache
def armv7(text: str, *, thumb: bool = False) -> tuple[Insn, ...]:
    """The instructions of ``text``, each as if at address 0."""
    state = ".thumb" if thumb else ".arm"
    header = f".syntax unified\n{state}\n.arch armv7-a\n.arch_extension mp\n.fpu neon\n"
    source = f"{header}.global main\nmain:\n{text}\n"
    image = Image.load(build(source, language="asm", thumb=thumb, cpu="cortex-a8"))
    found: list[Insn] = []
    addr = TEXT_BASE
    while len(found) < len(text.splitlines()):
        code = image.read(addr, 4) or image.read(addr, 2)
        assert code is not None
        insn = decode(code, addr, thumb)
        found.append(at(insn, 0))
        addr = insn.next
    return tuple(found)


def abstract(core: str, profile: CoreProfile, insns: tuple[Insn, ...], *, aligned8: bool) -> int:
    rows = load_core(core, profile)
    stepper: BlockStepper | DualStepper
    if rows.dual_issue:
        stepper = DualStepper(dual_issue.IDLE)
    else:
        stepper = BlockStepper(IDLE, profile, rows.row("FLAGS_TO_TARGET").latency[0])
    for insn in insns:
        stepper.run(demand(rows, insn, aligned=True, aligned8=aligned8))
    return stepper.at


def concrete(core: str, insns: tuple[Insn, ...], address: int) -> int:
    """With warm caches."""
    geometry, random = CacheGeometry(16384, 4, 32), Random(0)
    caches = [SimulatedCache(geometry, ReplacementPolicy.ROUND_ROBIN, random) for _ in range(2)]
    caches[0].load(0)
    for line in range(8):
        caches[1].load(ALIGNED8 // 32 + line)
    chip = FetchAndCaches(caches[0], caches[1], 0, random)
    machine = concrete_machine(load_core(core, CoreProfile.NOMINAL), MemoryBus(LATENCIES), chip)
    machine.start(0)
    for i, insn in enumerate(insns):
        accessed = None if insn.memory is None else address
        machine.execute(ExecutedInsn(at(insn, 4 * i), True, False, accessed))
    return machine.clock


Table = list[tuple[str, str, int, list[tuple[str, int, int]], list[str]]]


def forms(table: Table, *, narrow: bool = False) -> Iterator[tuple[str, str, int, int]]:
    """Text, kind, cycles of the address, and 1 if base and offset are surely aligned."""
    for name, kind, size, offsets, indexing in table:
        for (offset, cycles, multiple), address in product(offsets, indexing):
            if narrow and offset == "#0" and address != INDEXING[0]:
                continue
            yield f"{name} {address.format(offset)}", kind, cycles, multiple % min(size, 4) == 0


def assembled(thumb: bool) -> list[tuple[Insn, str, int, int]]:
    rows = list(forms(THUMB if thumb else ARM, narrow=thumb))
    if thumb:
        rows = [row for row in rows if encodable(row[0])]
    insns = armv7("\n".join(text for text, *_ in rows), thumb=thumb)
    return [(insn, *row[1:]) for insn, row in zip(insns, rows, strict=True)]


def encodable(text: str) -> bool:
    """Not a 16-bit form of an offset that only the 32-bit one has (A6.2.4), or a wide twin."""
    return ".w" in text or not text.startswith(("ldr", "str")) or "t r4" in text or "d r4" in text


@pytest.mark.slow("every addressing form")
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("thumb", [False, True])
def test_every_form_by_hand(core: str, thumb: bool) -> None:
    wrong = []
    for insn, kind, cycles, multiple in assembled(thumb):
        assert insn.memory is not None
        pair = kind.startswith("pair")
        for address in (ALIGNED8, ALIGNED4) if pair else (ALIGNED4,):
            aligned8 = address % 8 == 0
            alignment = ("aligned" if aligned8 else "not") if pair else "maybe"
            if not pair and multiple:
                alignment = "aligned"
            nominal, bound = CORES[core][kind, cycles, alignment]
            after = pool("\n".join(SEQUENCES[kind]) + "\n")
            for want, most, then in zip(nominal, bound or nominal, after, strict=True):
                if then is after[2] and not insn.memory.writeback:
                    continue
                insns = (insn, then)
                found = (
                    abstract(core, CoreProfile.NOMINAL, insns, aligned8=aligned8),
                    concrete(core, insns, address),
                    abstract(core, CoreProfile.WCET, insns, aligned8=aligned8),
                )
                if found != (want, want, most):
                    wrong.append((insn.text, then.text, aligned8, found, (want, most)))
    assert not wrong


@pytest.mark.parametrize("core", CORES)
def test_forms_without_an_address_mode(core: str) -> None:
    then = pool("ldr r8, [r7]\n")
    insns = armv7("\n".join(text for text, *_ in OTHERS))
    for insn, (text, section, *figures) in zip(insns, OTHERS, strict=True):
        nominal, most = figures[[*CORES].index(core)]
        sequence = (insn, *then)
        assert abstract(core, CoreProfile.NOMINAL, sequence, aligned8=True) == nominal, (
            text,
            section,
        )
        assert concrete(core, sequence, ALIGNED8) == nominal, (text, section)
        assert abstract(core, CoreProfile.WCET, sequence, aligned8=True) == most, (text, section)


def test_elements_of_neon() -> None:
    """GCC's description: six cycles at most; the bound adds a replay, stores 20 more."""
    for insn in armv7("\n".join(NEON)):
        sequence = (insn, *pool("ldr r8, [r7]\n"))
        most = 15 if insn.mnemonic.startswith("vld") else 35
        assert abstract("cortex-a8", CoreProfile.NOMINAL, sequence, aligned8=True) == 7, insn.text
        assert concrete("cortex-a8", sequence, ALIGNED8) == 7, insn.text
        assert abstract("cortex-a8", CoreProfile.WCET, sequence, aligned8=True) == most, insn.text


LISTS = [f"{name}{way} r1{back}, {{{{{{}}}}}}" for name in ("ldm", "stm")
         for way in ("ia", "ib", "da", "db") for back in ("", "!")]  # fmt: skip


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("count", range(1, 15))
def test_lists(core: str, count: int) -> None:
    """The cycles of a list of registers.

    ARM1136 (16.12): 64 bits a cycle. A8: two cycles or more, as in LLVM (aligned) and the TRM's
    example; the bound is for an unaligned list.
    """
    registers = ", ".join(f"r{r}" for r in (0, *range(2, 15))[:count])
    aligned, other = (count + 1) // 2, count // 2 + 1
    if core == "cortex-a8":
        aligned, other = max(2, aligned), max(2, other)
    for insn in armv7("\n".join(text.format(registers) for text in LISTS)):
        sequence = (insn, *pool("pld [r1]\n"))
        for address, cycles in ((ALIGNED8, aligned), (ALIGNED4, other)):
            found = concrete(core, sequence, address)
            aligned8 = address % 8 == 0
            assert found == abstract(core, CoreProfile.NOMINAL, sequence, aligned8=aligned8), (
                insn.text
            )
            assert abstract(core, CoreProfile.WCET, sequence, aligned8=aligned8) >= found, insn.text
            assert found == cycles + 1, insn.text


TAKEN = [
    # Text, then cycles to the target: documented and bound, of the ARM1136 and of the A8.
    ("ldr pc, [r1]", (8, 9), (15, 15)),
    ("ldr pc, [r1, #-4]!", (8, 9), (15, 15)),
    ("ldr pc, [r1], #4", (8, 9), (15, 15)),
    ("ldr pc, [r1, r2]", (8, 9), (15, 15)),
    ("ldr pc, [r1, r2, lsl #2]", (8, 9), (15, 15)),
    ("ldr pc, [r1, r2, lsl #3]", (9, 10), (16, 16)),
    ("ldr pc, [r1, r2, lsr #2]", (9, 10), (16, 16)),
    ("ldr pc, [r1, r2, asr #32]", (9, 10), (16, 16)),
    ("ldr pc, [r1, -r2]", (9, 10), (16, 16)),
    ("ldr pc, [r1], -r2, rrx", (9, 10), (16, 16)),
    ("rfeia sp!", (9, 11), (16, 16)),
]


@pytest.mark.parametrize("core", CORES)
def test_loads_of_the_pc(core: str) -> None:
    for insn, (text, *figures) in zip(
        armv7("\n".join(text for text, *_ in TAKEN)), TAKEN, strict=True
    ):
        for profile, cycles in zip(
            (CoreProfile.NOMINAL, CoreProfile.WCET), figures[[*CORES].index(core)], strict=True
        ):
            found = demand(load_core(core, profile), insn, aligned=True, aligned8=True)
            assert found.taken == cycles, (text, profile)


def test_table_branches() -> None:
    """The address in a table of halfwords takes two cycles, because its index is shifted by one.

    Only a table that is not next to the instruction may be at an odd address.
    """
    texts = ["tbb [pc, r0]", "tbb [r1, r0]", "tbh [pc, r0, lsl #1]", "tbh [r1, r0, lsl #1]"]
    rows = load_core("cortex-a8", CoreProfile.WCET)
    insns = [armv7(text, thumb=True)[0] for text in texts]
    taken = [demand(rows, insn, aligned=True, aligned8=False).taken for insn in insns]
    assert taken == [15, 15, 16, 16]
    taken = [demand(rows, insn, aligned=False, aligned8=False).taken for insn in insns]
    assert taken == [15, 15, 16, 24]


Form = tuple[object, ...]


def form(insn: Insn) -> Form:
    """The features that distinguish addressing forms."""
    memory = insn.memory
    assert memory is not None
    offset: tuple[object, ...] = ("list", memory.displacement >= 0)
    if memory.index is not None:
        offset = ("index", memory.subtract, memory.shift, memory.lsl, min(memory.scale_shift, 4))
    elif insn.mnemonic not in ("ldm", "stm", "vldm", "vstm"):
        offset = ("constant", aligned_displacement(memory))
    return (insn.mnemonic, memory.access, offset, memory.pre_indexed, memory.writeback)


def aligned_displacement(memory: MemoryAccess) -> bool:
    return memory.displacement % memory.size == 0


def listed(*, thumb: bool) -> set[Form]:
    """The forms that the tests above have figures for."""
    insns = [insn for insn, *_ in assembled(thumb)]
    texts = [text.format(r) for text in LISTS for r in ("r4", "r4, r5")]
    if thumb:
        texts = [t for t in texts if t[3:5] in ("ia", "db") and "r5" in t]
        texts += ["tbb [r1, r0]", "tbh [r1, r0, lsl #1]", "rfeia sp!", "rfeia sp", "srsdb sp!, #19",
                  "srsdb sp, #19", "ldrex r4, [r1, #8]", "strex r4, r5, [r1, #8]"]  # fmt: skip
        skipped = ("swp", "ldrex r", "strex r", "srs")
        texts += [t for t, *_ in OTHERS if not t.startswith(skipped) and "." not in t]
    else:
        texts += [f"{n}{way} sp{back}{rest}" for n, rest in (("rfe", ""), ("srs", ", #19"))
                  for way in ("ia", "ib", "da", "db") for back in ("", "!")]  # fmt: skip
        texts += [text for text, *_ in OTHERS] + [text for text, *_ in TAKEN]
    insns += armv7("\n".join([*texts, *NEON]), thumb=thumb)
    return {form(insn) for insn in insns}


def arm_words() -> Iterator[int]:
    """Every form of the spaces of A5.2.8, A5.2.10, A5.3, A5.5, A5.6, and A5.7."""
    for bits in range(32):  # P U B W L, P U I W L, P U S W L, P U D W L
        yield 0xE4000000 | bits << 20 | 1 << 16 | 4 << 12 | 8
        yield 0xE4000000 | bits << 20 | 15 << 16 | 4 << 12 | 8
        for kind, amount in product(range(4), (0, 1, 2, 3, 4, 31)):
            yield 0xE6000000 | bits << 20 | 1 << 16 | 4 << 12 | amount << 7 | kind << 5 | 2
        for kind, low in product(range(1, 4), (2, 8)):
            yield 0xE0000090 | bits << 20 | 1 << 16 | 4 << 12 | kind << 5 | low
        for registers in (0x10, 0x30, 0x7F0):
            yield 0xE8000000 | bits << 20 | 1 << 16 | registers
        for coprocessor in (10, 11):
            yield 0xEC000000 | bits << 20 | 1 << 16 | coprocessor << 8 | 4
    for operation in range(8, 16):
        yield 0xE1000F90 | operation << 20 | 1 << 16 | 4 << 12
    for operation in (0, 4):
        yield 0xE1000094 | operation << 20 | 1 << 16 | 8 << 12
    for bits in range(32):
        yield 0xF8000000 | bits << 20 | 13 << 16 | 0x0A00 | (0 if bits & 1 else 0x0513)
    for up, kind, amount in product((0, 1), range(4), (0, 1, 2, 3, 4, 31)):
        for hint in (0xF551F000, 0xF511F000, 0xF451F000):  # pld, pldw, pli
            yield hint | up << 23 | 8
            yield hint | up << 23 | 1 << 25 | amount << 7 | kind << 5 | 2
    for load, form_, rm, size in product((0, 2), range(16), (15, 13, 2), range(4)):
        yield 0xF4010000 | load << 20 | form_ << 8 | size << 6 | rm
        yield 0xF4810000 | load << 20 | form_ << 8 | size << 6 | rm


def thumb_codes() -> Iterator[bytes]:
    """Every 16-bit encoding; every form of A6.3.5 to A6.3.10, A6.3.18, and A7.7."""
    for half in range(0xE800):
        yield half.to_bytes(2, "little") + b"\0\0"
    words = []
    for bits in range(32):  # size and load of A6.3.7 to A6.3.10
        for tail in (0x008, *(amount << 4 | 2 for amount in range(4)), *(kind << 8 | 8
                     for kind in (9, 11, 12, 13, 14, 15))):  # fmt: skip
            words.append(0xF8010000 | bits << 20 | 4 << 12 | tail)
            words.append(0xF801F000 | bits << 20 | tail)
            words.append(0xF80F4000 | bits << 20 | tail)
    for bits in range(32):
        words += [0xE8410000 | (bits & 0x17) << 20 | (bits & 8) << 21 | 0x4502]
        words += [0xE8010000 | (bits & 0x1B) << 20 | 0x0070]
        words += [0xEC010004 | (bits & 0x1F) << 20 | c << 8 for c in (10, 11)]
        words += [0xE8CF0000 | 13 << 16 & 0, 0xE8D1F000, 0xE8D1F010, 0xE8D14F7F, 0xE8C14F78]
        words += [0xE80DC000 | (bits & 0x1A) << 20 | 0x13, 0xE81DC000 | (bits & 0x1A) << 20]
    for operation in (4, 5, 7):
        words += [0xE8C14500 | operation << 4 | 8, 0xE8D14500 | operation << 4 | 15]
    for load, form_, rm, size in product((0, 2), range(16), (15, 13, 2), range(4)):
        words.append(0xF9010000 | load << 20 | form_ << 8 | size << 6 | rm)
        words.append(0xF9810000 | load << 20 | form_ << 8 | size << 6 | rm)
    for word in words:
        yield (word >> 16).to_bytes(2, "little") + (word & 0xFFFF).to_bytes(2, "little")


@pytest.mark.slow("every addressing form")
@pytest.mark.parametrize("thumb", [False, True])
def test_no_form_is_missing(thumb: bool) -> None:
    """A form of the encoding space that no table above names."""
    known = listed(thumb=thumb)
    assert len(known) > (100 if thumb else 250)
    missing: dict[Form, str] = {}
    seen = set()
    codes = thumb_codes() if thumb else (word.to_bytes(4, "little") for word in arm_words())
    for code in codes:
        try:
            insn = decode(code, 0, thumb)
        except InputError:
            continue
        memory = insn.memory
        if memory is None or (memory.base == PC and memory.writeback):
            continue  # the latter is UNPREDICTABLE
        if memory.access is AccessKind.PRELOAD and insn.mnemonic.startswith("ldr"):
            continue  # unprivileged, to the pc: UNPREDICTABLE
        seen.add(form(insn))
        if form(insn) not in known:
            missing.setdefault(form(insn), f"{code.hex()} {insn.text}")
    assert not missing, "\n".join(f"{text}: {key}" for key, text in missing.items())
    assert len(seen) > (100 if thumb else 250)
    assert {AccessKind.LOAD, AccessKind.STORE, AccessKind.PRELOAD} <= {
        access for _, access, *_ in seen
    }
    shifted = ("index", True, ShiftKind.IMMEDIATE, False, 0)
    assert thumb or shifted in {offset for _, _, offset, *_ in seen}
