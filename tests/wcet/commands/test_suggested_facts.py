"""``wcet analyse --suggest-facts``: everything that is missing, in one run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

import pytest

from quoll.processes.time_limit import TimeIsUp
from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """\
struct item { struct item *next; int value; } *volatile items;
int (*volatile chosen)(int);
int volatile sink;
__attribute__((noinline)) int depth(struct item *at) {
    return at ? depth(at->next) + at->value : 0;
}
__attribute__((noinline)) int walk(struct item *at) {
    int sum = 0;
    for (; at; at = at->next) { sum += at->value; sink = sum; }
    return sum;
}
__attribute__((noinline)) int call(int x) { return chosen(x) + 1; }
void other(void) {
    for (struct item *at = items; at; at = at->next) sink = 1;
    if (sink) for (;;) sink = 2;
}
int main(int n) { return depth(items) + walk(items) + call(n); }
"""
FLAGS = ("-fno-ipa-cp", "-fno-optimize-sibling-calls", "-fno-tree-loop-distribute-patterns")


@pytest.fixture(scope="module")
def program() -> Path:
    return build(SOURCE, *FLAGS, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))


def suggested(
    capsys: pytest.CaptureFixture[str], elf: Path, file: Path, *more: object
) -> tuple[int, str]:
    arguments = ["analyse", elf, "--entry", "main", "--entry", "other", "--platform", "kzm"]
    arguments += ["--no-cache", "--quiet", "--suggest-facts", file, *more]
    return main([str(a) for a in arguments]), capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_everything_is_found_in_one_run_and_is_enough(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """Recursion, calls, loops and endless loops of all entries; six runs said one after another."""
    file = tmp_path / "kernel.facts"
    status, text = suggested(capsys, program, file)
    assert status == 5, "that of the first error"
    kinds = "targets of|recursion of|loop|path must"
    facts = re.findall(rf"^# ({kinds}) .*$", file.read_text(), re.MULTILINE)
    assert sorted(facts) == ["loop", "loop", "path must", "recursion of", "targets of"]
    counts = "1 of ends of paths, 1 of targets, 1 of recursion, 2 of loops"
    assert text.startswith(f"missing: 5 facts: {counts}\n")
    assert re.search(r"targets of call\+0x.*\n.*; called by main > call\n", text)
    assert file.read_text().count("called by main > ") == 3
    assert re.search(r"recursion of depth at most N\s+needed by main: .*: depth -> depth", text)
    assert re.search(r"loop walk\+0x\S+ at most N\s+needed by main: .* cycles for each", text)
    filled = re.sub(rf"^# (?=({kinds}) )", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(filled.replace("at most N", "at most 3").replace("are PLACE, ...", "are walk"))
    again = tmp_path / "again.facts"
    status, text = suggested(capsys, program, again, "--facts", file)
    assert (status, text) == (0, "nothing is missing\n"), text


INLINED = """\
struct item { struct item *next; int key; } *volatile queues[3];
int volatile sink;
#define STATUS (*(volatile unsigned *)0x44E09014)
#define COPIED static inline __attribute__((always_inline))
COPIED void put(int c) { while (!(STATUS & 32)) ; sink = c; }
COPIED int after(struct item *at, int key) {
    while (at && at->key < key) { sink = at->key; at = at->next; }
    return at != 0;
}
__attribute__((noinline)) void first(int x) { put(x); sink = after(queues[0], x); }
__attribute__((noinline)) void second(int x) { sink = after(queues[1], x + 1); put(x); }
__attribute__((noinline)) void never(int x) { put(x); sink = after(queues[2], x); }
int main(int n) { first(n); second(n); return 0; }
void other(void) {}
"""


@pytest.mark.slow("several whole analyses")
def test_inlined_copies_of_a_loop_are_one_question(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A line for each copy, as the source line also has a copy in code that is not analysed."""
    elf = build(INLINED, *FLAGS, optimise="-O2", link=("-Wl,-Ttext=0xf0010000",))
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, elf, file)
    assert text.startswith("missing: 2 facts: 2 of loops\n"), text
    assert text.count("; and 1 more place like it") == 2
    written = re.findall(r"^# loop (\w+)\+0x\S+ at most N$", file.read_text(), re.MULTILINE)
    assert sorted(written) == ["first", "first", "second", "second"]
    filled = re.sub(r"^# (?=loop )", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(filled.replace("at most N", "at most 3"))
    status, text = suggested(capsys, elf, tmp_path / "again.facts", "--facts", file)
    assert (status, text) == (0, "nothing is missing\n"), text


def test_the_time_limit_ends_it_with_all_that_was_found(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """The output names the entries of which more may be missing.

    The first run imports all modules: an alarm that an import loses would come five seconds later.
    """
    suggested(capsys, program, tmp_path / "all.facts")
    file = tmp_path / "kernel.facts"
    status, text = suggested(capsys, program, file, "--suggest-within", "0.001")
    assert status == 0
    first, *rest = text.splitlines()
    assert first == "nothing that was found in time is missing"
    late = "the time limit passed: more may be missing (--suggest-within)"
    assert rest == [f"  entry main: {late}", f"  entry other: {late}"]
    assert file.read_text().startswith("# Missing facts about ")


@pytest.mark.slow("several whole analyses")
def test_the_control_flow_of_all_entries_comes_before_any_proof(
    capsys: pytest.CaptureFixture[str],
    program: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, a long proof in one entry took the time in which the others were to be examined.

    The smallest entry is analysed first.
    """
    analysed = []

    def late(_run: object, name: str, _address: int) -> NoReturn:
        analysed.append(name)
        raise TimeIsUp

    monkeypatch.setattr("wcet.analysis.fact_survey.cached_or_prepared", late)
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, program, file)
    assert text.startswith("missing: 2 facts: 1 of targets, 1 of recursion\n")
    assert analysed == ["other"]
    assert text.count("the time limit passed") == 2


def test_the_file_beside_the_kernel_may_be_written_but_not_replaced(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    """It was refused after the analysis, even where there was none."""
    elf = tmp_path / "kernel.elf"
    elf.write_bytes(program.read_bytes())
    status, text = suggested(capsys, elf, tmp_path / "kernel.facts")
    assert (status, text.splitlines()[0][:16]) == (5, "missing: 5 facts")
    before = (tmp_path / "kernel.facts").read_text()
    status, text = suggested(capsys, elf, tmp_path / "kernel.facts")
    assert (status, text.splitlines()[0][:16]) == (5, "missing: 5 facts"), "only comments so far"
    assert (tmp_path / "kernel.facts").read_text() == before
    before = before.replace("# recursion of depth at most N", "recursion of depth at most 2")
    (tmp_path / "kernel.facts").write_text(before)
    status, text = suggested(capsys, elf, tmp_path / "kernel.facts")
    assert (status, text) == (2, "")
    assert (tmp_path / "kernel.facts").read_text() == before


def test_what_no_fact_takes_away_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The other entry is looked at all the same."""
    elf = build(
        "struct item { struct item *next; } *volatile items;\n"
        'void main(void) { __asm__ volatile("mcr p15, 0, r0, c1, c0, 0"); }\n'
        "void other(void) { for (struct item *at = items; at; at = at->next) ; }\n",
        link=("-Wl,-Ttext=0xf0010000",),
    )
    status, text = suggested(capsys, elf, tmp_path / "kernel.facts")
    assert status == 7
    assert re.search(
        r"^missing: 1 fact: 1 of loops\n  loop other.*\n +needed by other: .*\n  entry main: ", text
    )


def test_an_input_is_not_overwritten(
    capsys: pytest.CaptureFixture[str], program: Path, tmp_path: Path
) -> None:
    facts = tmp_path / "my.facts"
    facts.write_text("recursion of depth at most 2\n")
    assert suggested(capsys, program, facts, "--facts", facts)[0] == 2
    assert facts.read_text() == "recursion of depth at most 2\n"


@pytest.mark.parametrize("entry", ["main", "other"])
def test_an_error_says_how_to_find_all(
    capsys: pytest.CaptureFixture[str], program: Path, entry: str
) -> None:
    arguments = ["--entry", entry, "--platform", "kzm", "--no-cache", "--quiet"]
    assert main(["analyse", str(program), *arguments]) != 0
    assert "all that is missing, at once: --suggest-facts FILE" in capsys.readouterr().err


HIDDEN = """\
int (*volatile chosen)(int); int volatile sink; int volatile *volatile list;
#define N __attribute__((noinline))
N int walk(int volatile *at) { int sum = 0; while (*at++) sum++; return sum; }
N int call(int x) { return chosen(x) + walk(list); }
N int debug(void) { int r; __asm__ volatile("mrc p14, 0, %0, c5, c3, 0\\n cdp p3, 1, c0, c0, c0"
                                            : "=r"(r)); return r; }
N int deep(int n) { return n ? deep(n - 1) + sink : 0; }
N int send(int n) { int r = n == 7 ? call(n) : n; return r + (n == 3 ? debug() : 0) + deep(n); }
int main(int n) { return send(n) + 1; }
void other(void) {}
"""


@pytest.mark.slow("several whole analyses")
def test_what_lies_behind_an_unknown_call_is_asked_in_the_same_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """And an instruction that is refused hides nothing: each with the calls that lead to it."""
    elf = build(HIDDEN, *FLAGS, link=("-Wl,-Ttext=0xf0010000",))
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, elf, file)
    found = "1 of targets, 1 of functions, 1 of recursion, 1 of loops"
    assert text.startswith(f"missing: 4 facts: {found}\n"), text
    for way in ("call", "debug", "deep", "call > walk"):
        assert re.search(rf"called by main > send > {way}\n", text), text
    assert re.search(r"^  function debug takes at most N cycles\n.*: cdp ", text, re.MULTILINE)
    filled = re.sub(r"^# (?=(targets|function|recursion|loop) )", "", file.read_text(), flags=re.M)
    filled = filled.replace("most N", "most 3").replace("PLACE, ...", "0x4000")
    file.write_text(f"{filled}function 0x4000 takes at most 40 cycles\n")
    status, text = suggested(capsys, elf, tmp_path / "again.facts", "--facts", file)
    assert (status, text) == (0, "nothing is missing\n")


CAUSES = """\
#define N __attribute__((noinline))
int (*volatile put)(int); int volatile sink;
struct item { struct item *next; } *volatile items;
N void print(const char *text) {
    while (*text) put(*text++);
    for (struct item *at = items; at;) at = at->next;
}
N void panic(const char *text) { print(text); for (;;) sink = 1; }
N int get(int n) { if (n > 3) panic("get"); return n; }
N int set(int n) { if (n > 5) panic("set"); return sink = n; }
int main(int n) { return get(n) + set(n); }
void other(void) {}
"""


@pytest.mark.slow("several whole analyses")
def test_the_end_of_all_paths_is_asked_first_and_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The calls and loops of ``print`` are consequences: only ``panic`` reaches them."""
    elf = build(CAUSES, *FLAGS, link=("-Wl,-Ttext=0xf0010000",))
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, elf, file)
    assert text.startswith("missing: 1 fact: 1 of ends of paths\n  path must end at panic\n")
    assert "this leaves out 1 function that only it reaches: print; called by main > " in text
    file.write_text(file.read_text().replace("# path must", "path must"))
    status, text = suggested(capsys, elf, tmp_path / "again.facts", "--facts", file)
    assert (status, text) == (0, "nothing is missing\n")


SWITCHING = """\
void switch_to(void *from, void *to);
__asm__(".arm\\n.type switch_to, %function\\nswitch_to: push {r4-r11, lr}\\n str sp, [r0]\\n"
        " ldr sp, [r1]\\n pop {r4-r11, pc}\\n.size switch_to, . - switch_to\\n");
unsigned threads[2];
int main(void) { switch_to(&threads[0], &threads[1]); return 0; }
void other(void) {}
"""


def test_a_switch_is_proposed_as_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, build(SWITCHING, link=("-Wl,-Ttext=0xf0010000",)), file)
    assert text.startswith(
        "missing: 1 fact: 1 of context switches\n"
        "  switch_to switches context\n"
        "      needed by main: "
    )


TWO_KINDS = """\
void switch_to(void *from, void *to);
__asm__(".arm\\n.type switch_to, %function\\nswitch_to: push {r4-r11, lr}\\n str sp, [r0]\\n"
        " ldr sp, [r1]\\n pop {r2, r3}\\n msr spsr_cxsf, r3\\n cmp r2, #0\\n"
        " ldmne sp!, {r0-r12, lr, pc}^\\n pop {r4-r11, lr}\\n bx lr\\n"
        ".size switch_to, . - switch_to\\n");
unsigned threads[2];
int main(void) { switch_to(&threads[0], &threads[1]); return 0; }
void other(void) {}
"""


def test_an_end_that_another_answer_makes_needless_is_not_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A switch continues an interrupted context, or one that switched itself."""
    file = tmp_path / "kernel.facts"
    elf = build(TWO_KINDS, link=("-Wl,-Ttext=0xf0010000",))
    _, text = suggested(capsys, elf, file)
    assert text.startswith("missing: 1 fact: 1 of context switches\n  switch_to switches"), text
    file.write_text("switch_to switches context\n")
    status, text = suggested(capsys, elf, tmp_path / "again.facts", "--facts", file)
    assert (status, text) == (0, "nothing is missing\n"), text


CALLED_BACK = """\
#define UART (*(volatile unsigned *)0x44E09014)
#define N __attribute__((noinline))
void (*volatile done)(int); unsigned volatile ready, threads[2];
void switch_to(void *from, void *to);
__asm__(".arm\\n.type switch_to, %function\\nswitch_to: push {r4-r11, lr}\\n str sp, [r0]\\n"
        " ldr r2, =ready\\n1: ldr r3, [r2]\\n cmp r3, #0\\n beq 1b\\n"
        " ldr sp, [r1]\\n pop {r4-r11, pc}\\n.size switch_to, . - switch_to\\n");
N void report(int c) { while (!(UART & 32)) ; ready = c; }
void start(void) { done = report; }
int main(void) { done(3); return 0; }
void other(void) { switch_to((void *)&threads[0], (void *)&threads[1]); }
"""


@pytest.mark.slow("several whole analyses")
def test_code_behind_an_answer_is_described_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A wait in a function that is called back, and one in a switch, which is analysed apart."""
    elf = build(CALLED_BACK, *FLAGS, link=("-Wl,-Ttext=0xf0010000",))
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, elf, file)
    counts = "1 of ends of paths, 1 of context switches, 1 of loops"
    assert text.startswith(f"missing: 3 facts: {counts}\n"), text
    assert "waits until other code stores to" in text
    waits = "the loop waits for bit 5 of the device register at 0x44e09014"
    assert re.search(rf"{waits}.*; called by main > report\n", text)


DRAINED = """\
#define UART ((volatile unsigned *)0x44E09000)
char line[64]; unsigned used;
int main(void) {
    while (UART[5] & 1) { char c = UART[0]; if (used < sizeof line) line[used++] = c; }
    return 0;
}
void other(void) {}
"""


@pytest.mark.slow("several whole analyses")
def test_a_loop_that_a_device_ends_is_named_by_its_register(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It does work in between: no word of the program is named, and no fact about a register."""
    _, text = suggested(capsys, build(DRAINED, *FLAGS), tmp_path / "kernel.facts")
    ends = "the loop goes on until the device register at 0x44e09014 ends it"
    assert f"{ends}; N is how often it executes its header at most; " in text, text
    assert "nothing bounds" not in text


COPIES = """\
struct item { struct item *next; int value; } *volatile items; int volatile sink;
static inline void all(int s) {
    for (struct item *at = items; at; at = at->next) sink += s;
}
int main(int n) {
    for (struct item *at = items; at; at = at->next) n += at->value;
    all(n);
    return n;
}
void other(void) { all(1); }
"""


@pytest.mark.slow("several whole analyses")
def test_a_loop_is_named_by_its_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where the line has another loop, too, which may need another number."""
    elf = build(COPIES, *FLAGS, link=("-Wl,-Ttext=0xf0010000",))
    monkeypatch.chdir(elf.parent)
    file = tmp_path / "kernel.facts"
    _, text = suggested(capsys, elf, file)
    loops = re.findall(r"^  loop (\S+) at most N$", text, re.MULTILINE)
    shapes = [re.sub("~.*|0x.*", "", place) for place in loops]
    assert sorted(shapes) == ["main+", "other+", "prog.c:6"]
    filled = re.sub(r"^# (?=loop prog)", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(filled.replace("at most N", "at most 3").replace("prog.c:6~", "prog.c:5~"))
    arguments = ["analyse", elf, "--entry", "main", "--platform", "kzm", "--no-cache", "--quiet"]
    arguments += ["--suggest-facts", tmp_path / "again.facts", "--facts", file]
    main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    left = [place for place in loops if place.startswith("main")]
    assert re.findall(r"^  loop (\S+) at most N$", said.out, re.MULTILINE) == left
    assert said.err.count("is followed to line 6") == 1
