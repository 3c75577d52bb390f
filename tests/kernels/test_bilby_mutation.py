# SPDX-License-Identifier: BSD-2-Clause
"""Faults made by rule: the faults of statements, and a sample that tests find."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from kernels.bilby.verification.fuzz.host import HEAD, READ, CheckFailure, Host, running, text_of
from kernels.bilby.verification.fuzz.mutants import Mutant, build_mutant, prepare
from kernels.bilby.verification.mutation.document import kind, page
from kernels.bilby.verification.mutation.effort import TARGETS, Effort, name, sources
from kernels.bilby.verification.mutation.fault import Fault
from kernels.bilby.verification.mutation.instructions import instructions, is_assembly
from kernels.bilby.verification.mutation.journal import Entry, Journal
from kernels.bilby.verification.mutation.judge import BY_HAND
from kernels.bilby.verification.mutation.reasons import Reason, read_reasons, why
from kernels.bilby.verification.mutation.schema import Numbered, choices
from kernels.bilby.verification.mutation.statements import BLANKED, PARSER, families, sites, walk
from kernels.bilby.verification.mutation.workshop import globalize
from tests.testing.bilby.build import BILBY
from tests.testing.harness.cases import cases

SAMPLE = cases(1)
NOT_FOUND_YET = min(1, SAMPLE // 4)  # of the sample
SEED = 1
CODE = range(0x08000000, 0x0A000000)  # of the host builds

SOURCE = b"""
#define POINT(n) __extension__({ \\
    if (pending()) \\
        leave(n); \\
})
static bool first(word_t a, word_t b)
{
    word_t left = a + 2;

    if (a < b && !b)
        return ERROR_RANGE == left;
    switch (a) {
    case CAP_NULL:
        machine_drain();
        break;
    default:
        left |= 1u << b;
    }
    while (left != 0)
        left--;
    return true;
}
"""


def made(text: str) -> set[tuple[str, str]]:
    """The faults of one statement: operator, and replacement."""
    following = families({"x.h": b"CAP_NULL CAP_TCB ERROR_NONE ERROR_RANGE"})
    found = [site for site in sites("x.c", SOURCE, following) if site.text == text]
    assert len(found) == 1, text
    faults = [found[0].fault(edit, SOURCE) for edit in found[0].edits]
    return {(fault.operator, fault.new) for fault in faults}


@pytest.mark.parametrize(
    ("text", "operator", "new"),
    [
        ("if (a < b && !b)", "move a boundary", "if (a <= b && !b)"),
        ("if (a < b && !b)", "swap a connective", "if (a < b || !b)"),
        ("if (a < b && !b)", "drop a negation", "if (a < b && b)"),
        ("if (a < b && !b)", "drop an operand", "if (a < b)"),
        ("if (a < b && !b)", "drop an operand", "if (!b)"),
        ("if (a < b && !b)", "negate a condition", "if (!(a < b && !b))"),
        ("word_t left = a + 2;", "off by one", "word_t left = a + 3;"),
        ("word_t left = a + 2;", "swap an operator", "word_t left = a - 2;"),
        ("return ERROR_RANGE == left;", "swap a constant", "return ERROR_NONE == left;"),
        ("return ERROR_RANGE == left;", "negate a comparison", "return ERROR_RANGE != left;"),
        ("return ERROR_RANGE == left;", "delete a statement", ";"),
        ("case CAP_NULL", "delete a case", ""),
        ("machine_drain();", "drop a barrier", ";"),
        ("left |= 1u << b;", "swap an operator", "left = 1u << b;"),
        ("while (left != 0)", "negate a comparison", "while (left == 0)"),
        ("return true;", "swap a constant", "return false;"),
        ("if (pending())", "negate a condition", "if (!(pending()))"),
        ("leave(n);", "delete a statement", ";"),
    ],
)
def test_an_operator_makes_a_fault(text: str, operator: str, new: str) -> None:
    normal = {(name, made.replace("(!(", "!((").replace("))", ")")) for name, made in made(text)}
    assert (operator, new.replace("(!(", "!((").replace("))", ")")) in normal, normal


def test_the_last_return_of_a_value_stays() -> None:
    assert ("delete a statement", ";") not in made("return true;")


def test_a_return_from_the_last_case_stays() -> None:
    """Without it the function has no value, and the compiler may do as it likes."""
    source = b"int f(int a)\n{\n    switch (a) {\n    case 1:\n        return 2;\n"
    source += b"    default:\n        return 3;\n    }\n}\n"
    edits = {site.text: {edit.new for edit in site.edits} for site in sites("x.c", source, {})}
    assert b";" in edits["return 2;"]
    assert b";" not in edits["return 3;"]


ASSEMBLY = b"""/* mov r0, #1 */
#define WORDS \\
    mov r0, #2
    .macro both, register
    mov     \\register, #3    /* three */
1:  subs    r1, r1, #1
    bne     1b
    .endm
function entry
    both    r4
    both    r4
entry_end:
    bx      lr
"""


def test_each_instruction_can_be_left_out() -> None:
    found = instructions("x.S", ASSEMBLY)
    assert [(site.function, site.text, site.nth) for site in found] == [
        ("both", "mov \\register, #3", 0),
        ("both", "subs r1, r1, #1", 0),
        ("both", "bne 1b", 0),
        ("entry", "both r4", 0),
        ("entry", "both r4", 1),
        ("entry_end", "bx lr", 0),
    ]
    for site in found:
        (edit,) = site.edits
        left = edit.apply(ASSEMBLY)
        assert len(left.splitlines()) == len(ASSEMBLY.splitlines())
        assert left[: site.start] == ASSEMBLY[: site.start]


def test_a_choice_keeps_the_lines() -> None:
    found = sites("x.c", SOURCE, {})
    every = [Numbered(i + 1, site, site.edits[0]) for i, site in enumerate(found)]
    text = choices(SOURCE, every)
    assert text.count(b"\n") == SOURCE.count(b"\n")
    assert all(b"mutant_is(%d)" % fault.number in text for fault in every)


def test_each_function_of_the_kernel_is_parsed() -> None:
    """The grammar must know all code: unknown code would be left out."""
    for file, text in sources().items():
        if is_assembly(file):
            continue
        blanked = BLANKED.sub(lambda match: b" " * len(match[0]), text)
        for node in walk(PARSER.parse(blanked).root_node):
            body = node.child_by_field_name("body")
            if node.type == "function_definition" and body is not None:
                assert not [part for part in walk(body) if part.type == "ERROR"], file


def test_a_reason_belongs_to_a_statement_that_is_there() -> None:
    texts = sources()
    following = families(texts)
    every = [
        site
        for file, text in texts.items()
        for site in (
            instructions(file, text) if is_assembly(file) else sites(file, text, following)
        )
    ]
    there = {(site.file, site.function, site.text) for site in every}
    for reason in read_reasons():
        assert (reason.file, reason.function, reason.old) in there, reason
        assert len(reason.why.split()) >= 5, reason


def test_the_page_counts_what_the_journal_has(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    faults = [Fault("src/a.c", "f", "off by one", f"g({i});", f"g({i + 1});", 0) for i in range(3)]
    journal.add(Entry("0", faults[0], 1))
    journal.add(Entry("0", faults[0], 2, "W2 next", "a sequence"))
    journal.add(Entry("1", faults[1], 1))
    journal.add(Entry("2", faults[2], 1))
    journal.add(Entry("3", None))
    entries = list(Journal(tmp_path / "journal").entries.values())
    assert [entry.is_found for entry in entries] == [True, False, False, False]
    text = page(entries, 9, 1, [Reason("src/a.c", "f", "g(1);", "nobody looks at it")])
    assert "Of 9 statements and instructions, 4 were tried" in text
    assert "| off by one | 1 | 1 | 1 |" in text
    assert "| invariant W2 | 1 |" in text
    assert "nobody looks at it" in text


def test_what_finds_a_fault_has_a_name() -> None:
    assert kind("E1 the worker knows (at 0x0)") == "invariant E1"
    assert kind("T11 who waits for a context has none (at 0x0)") == "invariant T11"
    assert kind("slot 0x0, cap: the kernel has 1") == "the specification"


@pytest.fixture(scope="module")
def effort(tmp_path_factory: pytest.TempPathFactory) -> Effort:
    folder = tmp_path_factory.mktemp("mutants")
    return Effort(folder, Journal(folder / "journal"), SEED, ["src/", "include/"])


@pytest.mark.slow("builds the kernel with faults and fuzzes each")
def test_a_sample_of_faults_is_found(effort: Effort) -> None:
    """By the sequences that reach them, or random operations; or there is a reason why not.

    ``docs/mutants.md`` lists faults that are not found yet: of a sample there may be a few.
    """
    reasons = read_reasons()
    target, tried, missed = TARGETS[0], 0, []
    for site in effort.sites:
        fault = effort.faults[name(site)][0]
        if tried == SAMPLE or is_assembly(site.file) or not effort.has(target, fault):
            continue
        if not effort.workshop(target).changes_code(site.file, effort.texts[site.file], fault.edit):
            continue
        tried += 1
        found = effort.try_level(fault, 1) or effort.try_level(fault, 2)
        made = site.fault(fault.edit, effort.texts[site.file])
        if found is None and not why(made, reasons):
            missed.append(made)
    assert tried == SAMPLE
    assert len(missed) <= NOT_FOUND_YET, missed


def told(host: Host, operations: list[bytes]) -> list[object]:
    """The host's answers up to the first failure, without addresses of code."""
    answers: list[object] = []
    for operation in operations:
        if struct.unpack_from("<I", operation)[0] == READ:
            continue
        try:
            answer = host.answers([operation])[0]
        except CheckFailure:
            return [*answers, "ended"]
        status, count, tests, current = struct.unpack_from("<4I", answer)
        words = struct.unpack_from(f"<{2 * count}I", answer, HEAD)
        changes = [
            pair for pair in zip(words[::2], words[1::2], strict=True) if pair[1] not in CODE
        ]
        answers.append((status, tests, current, changes, text_of(answer)))
        if text_of(answer):
            break
    return answers


@pytest.mark.slow("builds the kernel with faults and fuzzes each")
def test_a_choice_is_the_faults_own_build(effort: Effort, tmp_path: Path) -> None:
    """Both answer every operation alike, word by word, if no variable lacks its value."""
    target = TARGETS[0]
    together = effort.judge(target)
    folder = prepare(tmp_path, target.preset, target.pin)
    trials = BY_HAND[:4]
    reached = set.intersection(*(together.reach(trial) for trial in trials)) - together.boot
    faults = [fault for faults in effort.faults.values() for fault in faults]
    defined = [fault for fault in faults if fault.edit.operator != "delete a statement"]
    tried = [fault for fault in defined if fault.number in reached][::250]
    assert len(tried) >= 3
    for fault in tried:
        text = effort.texts[fault.site.file]
        mutant = Mutant("", fault.site.file, text.decode(), fault.edit.apply(text).decode())
        with running(build_mutant(folder, mutant)) as host:
            for trial in trials:
                operations = together.operations(trial)
                expected = told(together.with_fault(fault.number), operations)
                together.close()
                host.reset()
                answers = told(host, operations)
                assert answers == expected, fault
                if "ended" in answers:
                    break


def test_the_invariants_reach_variables_of_every_preset(tmp_path: Path) -> None:
    """The list of their names goes on in further lines."""
    source, made = tmp_path / "a.c", tmp_path / "a.o"
    source.write_text(
        "static int ready, release_count, other;\n"
        "int *all(int i) { return i == 0 ? &ready : i == 1 ? &release_count : &other; }\n"
    )
    subprocess.run(["gcc", "-c", source, "-o", made], check=True)
    globalize(BILBY, made)
    listed = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
    kinds = {words[-1]: words[-2] for words in map(str.split, listed.splitlines())}
    assert kinds == {"all": "T", "ready": "B", "release_count": "B", "other": "b"}
