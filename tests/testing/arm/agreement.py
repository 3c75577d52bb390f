"""The agreement of decoding, objdump and the ops of an instruction."""

import re

from quoll.arm.insn import PC, Condition, ControlFlow, Insn
from quoll.semantics.lift import lift
from quoll.semantics.ops import OpCode, Space
from quoll.semantics.system import COPROCESSOR
from tests.testing.arm.corpus import Decoded

SYNONYMS = {Condition.CS: ("cs", "hs"), Condition.CC: ("cc", "lo")}
JUMPS = re.compile(r"(b|cbn?z|b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|hs|lo))$")
CALLS = re.compile(r"blx?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ge|lt|gt|hs|lo)?$|bl(ls|le)$")
ACCESSES = re.compile(
    r"(ldr|str|ldm|stm|push|pop|vld|vst|vpush|vpop|ldc|stc|swp|pld|pli|tb[bh]|rfe|srs|f(ld|st)m)"
)
OLD_COPROCESSORS = re.compile(r"cf(ldr|str)|(ld|st)f[sdep]|[ls]fm")  # Maverick and FPA


def disagreements(item: Decoded) -> list[str]:
    """Length, group, condition and direct target, each against objdump's line."""
    insn = item.insn
    mnemonic, _, rest = item.objdump.partition("\t")
    name = mnemonic.partition(".")[0]
    found = []
    if insn.flow is ControlFlow.UNDEFINED:
        return [] if "undefined" in item.objdump.lower() else ["known to objdump"]
    if not _same_condition(insn, name):
        found.append(f"condition {insn.cond.name}")
    jump, call = bool(JUMPS.match(name)), bool(CALLS.match(name))
    if jump != (insn.flow is ControlFlow.JUMP):
        found.append(f"jump: {insn.flow.name}")
    if call != (insn.flow in (ControlFlow.CALL, ControlFlow.INDIRECT_CALL)):
        found.append(f"call: {insn.flow.name}")
    if _leaves(name, rest) != (insn.flow in (ControlFlow.INDIRECT, ControlFlow.EXCEPTION_RETURN)):
        found.append(f"computed: {insn.flow.name}")
    access = bool(ACCESSES.match(name) or OLD_COPROCESSORS.match(name))
    if access != (insn.memory is not None):
        found.append("access")
    if insn.target is not None and "R_ARM_" not in item.objdump:  # else the linker decides
        shown = re.search(r"(?:^|\s|,)([0-9a-f]+) <", rest + " ")
        if shown is None or int(shown.group(1), 16) != insn.target:
            found.append(f"target {insn.target:#x}")
    return found


def _same_condition(insn: Insn, name: str) -> bool:
    if insn.cond is Condition.AL or insn.mnemonic == "it":
        return True
    return name.endswith(SYNONYMS.get(insn.cond, (insn.cond.name.lower(),)))


def _leaves(name: str, rest: str) -> bool:
    """Whether objdump shows a computed transfer that is no call."""
    if re.match(r"(bx|tb[bh]|rfe|eret)", name):
        return True
    if re.match(r"(ldm|pop)", name):
        return bool(re.search(r"pc\}", rest))
    return rest.startswith("pc,") and not re.match(r"(cmp|cmn|tst|teq|str|pld)", name)


def register_disagreements(insn: Insn) -> list[str]:
    """Registers and flags that the ops read and write, against the decoded ones."""
    reads: set[int] = set()
    writes: set[int] = set()
    flags: set[int] = set()
    unknown = (
        insn.mnemonic[0] == "v" or insn.mnemonic.startswith("pl") or insn.mnemonic in COPROCESSOR
    )
    for op in lift(insn):
        unknown |= op.code in (OpCode.UNKNOWN, OpCode.BANK, OpCode.TRAP)
        for var in op.ins:
            if var.space is Space.REG and var.offset < 16 and var.offset not in writes:
                reads.add(var.offset)
        if op.out is not None and op.out.space is Space.REG:
            (writes if op.out.offset < 16 else flags).add(op.out.offset)
        if op.code is OpCode.GOTO and insn.flow not in (ControlFlow.JUMP, ControlFlow.CALL):
            writes.add(PC)
    found = []
    kept = insn.writes - writes  # a register moved to itself: the move is dropped
    if not writes <= insn.writes or not kept <= insn.reads:
        found.append(f"writes {sorted(writes)}, decoded {sorted(insn.writes)}")
    unread = insn.reads - {PC} - reads
    extra = reads - insn.reads - (insn.writes if _piecewise(insn) else set())
    if extra or not (unknown or unread <= kept):
        found.append(f"reads {sorted(reads)}, decoded {sorted(insn.reads)}")
    if flags and not insn.sets_flags and not _saturates(insn):
        found.append(f"flags {sorted(flags)}")
    if insn.sets_flags and not flags:
        found.append("no flags")
    return found


def _piecewise(insn: Insn) -> bool:
    """Whether the specification writes the result byte by byte, so that ops read the old result."""
    return insn.mnemonic == "sel" or insn.mnemonic[1:4] in ("add", "sub")


def _saturates(insn: Insn) -> bool:
    """Instructions that set Q alone (A8: the signed multiplications that accumulate)."""
    return insn.mnemonic.startswith(("smla", "smlw", "smld", "smls", "q", "ssat", "usat"))
