"""Random C programs with decisions that exclude each other, and with some that only seem to.

Each program is a few *pairs* one after the other: a decision with much work, code in between, and
another decision with much work. What is in between either leaves the tested word alone, or may
change it: through a pointer, in a callee, in the next iteration, or because it is a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, FLAGS

__all__ = ["CHANGED", "DEVICE", "EXCLUSIVE", "PairedProgram", "build_pairs"]

DEVICE = 0x53F8_0000  # no memory of the program: each read may give another word
HEAD = f"""
#define NOINLINE __attribute__((noinline, noclone))
volatile unsigned sink[64], other, limit;
unsigned mode, state, limits, words[8];
#define device (*(volatile unsigned *){DEVICE:#x}u)
static NOINLINE void work(unsigned n) {{ for (unsigned i = 0; i < 12; i++) sink[i] += n; }}
static NOINLINE void more(unsigned n) {{ for (unsigned i = 0; i < 9; i++) sink[i + 20] ^= n; }}
static NOINLINE void apart(unsigned n) {{ other = n; sink[40] = n; }}
static NOINLINE void toggles(unsigned n) {{ mode ^= n; }}
static NOINLINE unsigned class_of(unsigned n)
{{ if (n & 1) {{ sink[50]++; return 7; }} if (n & 2) return 3; sink[51] = n; return 0; }}
"""
HEAD += """
struct node { unsigned kind, len; struct node *next; unsigned rest; };
struct node nodes[8] __attribute__((aligned(16)));
static NOINLINE void decides(unsigned *x, unsigned *y, unsigned n)
{ if (*x & 4) work(n); apart(n); if (!(*y & 4)) more(n); }
static NOINLINE void drains(unsigned *x, unsigned *y, unsigned n)
{ for (unsigned i = 0; i < 9; i++) if ((sink[i] & 1) && (*x & 8)) { *y &= ~8u; work(n); } }
static NOINLINE void steps(unsigned *x, unsigned *y, unsigned n)
{ for (unsigned i = 0; i < 9; i++)
  switch (*x) { case 0: *y = 1; break; case 1: *y = 2; break; default: *y = 0; work(n); } }
static NOINLINE void changes(struct node *q, unsigned n) { q->kind ^= n; }
static NOINLINE unsigned search(unsigned n)
{ for (unsigned k = 0; k < 5; k++) if ((sink[k] & 7) == (n & 7)) return 7; return 3; }
"""
# The first decision, the second, and their word: no execution takes both, if nothing changes it.
CONDITIONS = (
    ("(w) == 3", "(w) == 5"),
    ("(w) & 4", "!((w) & 4)"),
    ("(w) < 10", "(w) > 20"),
    ("(w) == 0", "(w) != 0"),
    ("((w) & 7) == 6", "!((w) & 2)"),
    ("(int)(w) < 0", "(w) < 100"),
)
EXCLUSIVE = (
    "argument", "global", "callee", "cleared", "switch", "iteration", "known", "exit", "machine",
    "search", "table", "field", "fields", "stored",
    "contexts", "length", "lengths", "counted", "once", "part",
)  # fmt: skip
CHANGED = (
    "pointer",
    "toggled",
    "across",
    "device",
    "partly",
    "recomputed",
    "reset",
    "skips",
    "other",
    "aliased",
    "walked",
    "moved",
    "byte",
    "followed",
    "crossed",
    "grown",
    "lengthened",
    "uneven",
    "recounted",
    "again",
    "rewritten",
    "drained",
    "stepped",
    "restarted",
    "raised",
)


@dataclass(frozen=True)
class PairedProgram:
    """An ELF, and the kinds of its pairs."""

    elf: Path
    kinds: tuple[str, ...]
    source: str


def decided(condition: str, word: str) -> str:
    return condition.replace("(w)", f"({word})")


def pair(kind: str, random: Random) -> list[str]:
    """The statements of one pair."""
    first, second = random.choice(CONDITIONS)
    if random.random() < 0.5:
        first, second = second, first
    word = {"global": "mode", "pointer": "mode", "toggled": "mode", "known": "mode"}.get(kind, "a")
    between = random.choice(["", "apart(b);", "sink[b & 63] = a;", "more(a);"])
    plain = [f"if ({decided(first, word)}) work(b);", between]
    last = f"if ({decided(second, word)}) more(b);"
    match kind:
        case "argument" | "global":
            return [*plain, last]
        case "known":
            return [*plain, "words[3] = b; limit = a;", last]
        case "callee" | "search":
            name, values = ("class_of", [0, 3, 7]) if kind == "callee" else ("search", [3, 7])
            one, two = random.sample(values, 2)
            return [f"unsigned c = {name}(a);", f"if (c == {one}) work(b);", between,
                    f"if (c == {two}) more(b);"]  # fmt: skip
        case "cleared":
            return ["if (a & 24) { work(b); a -= a & 24; }", between, "if (a & 24) more(b);"]
        case "switch":
            return ["switch (a & 3) { case 0: work(b); break; case 1: apart(b); break; "
                    "default: other = a; }", between,
                    "switch (a & 3) { case 2: more(b); break; case 1: sink[9] = b; break; "
                    "default: other = b; }"]  # fmt: skip
        case "iteration":
            body = " ".join([f"unsigned w = a ^ (i & {random.choice([1, 2, 5])});",
                             f"if ({decided(first, 'w')}) work(i);",
                             f"if ({decided(second, 'w')}) more(i);"])  # fmt: skip
            return [f"for (unsigned i = 0; i < {random.randint(2, 6)}; i++) {{ {body} }}"]
        case "exit":
            return ["unsigned k = 0;", "for (; k < 6; k++) if (sink[k] == a) break;",
                    "if (k == 6) work(b);", between, "if (k < 6) more(b);"]  # fmt: skip
        case "table" | "other":
            one, two = random.sample(range(7), 2)
            moved = "mode += b & 3;" if kind == "other" else between
            return [table(one, "work(b)"), "apart(b);", moved, table(two, "more(b)")]
        case "machine" | "reset" | "skips":
            return [machine(kind, random)]
        case "pointer":
            return [*plain, "*(a & 16 ? &mode : &words[b & 7]) = b;", last]
        case "toggled":
            return [*plain, "toggles(b);", last]
        case "field" | "fields" | "stored" | "aliased" | "walked" | "moved" | "byte" | "followed":
            return field_pair(kind, random)
        case "part" | "rewritten":
            byte = "((volatile unsigned char *)&mode)[0]"
            tests = random.sample(["(mode & 7) == 6", f"!({byte} & 2)"], 2)
            stored = f"{byte} = b;" if kind == "rewritten" else "words[3] = b;"
            return [f"if ({tests[0]}) work(b);", stored, f"if ({tests[1]}) more(b);"]
        case "length" | "lengths" | "grown" | "lengthened" | "uneven":
            return counted_pair(kind, random)
        case "counted" | "recounted" | "restarted" | "once" | "again" | "raised":
            return [stopping(kind, random)]
        case "contexts" | "crossed" | "drained" | "stepped":
            words = ["&mode, &mode", "&state, &state"]
            if kind != "contexts":
                words[random.randrange(2)] = random.choice(["&mode, &state", "&state, &limits"])
            name = {"drained": "drains", "stepped": "steps"}.get(kind, "decides")
            return [f"{name}({pair}, b + {n});" for n, pair in enumerate(words)]
        case "across":
            body = (
                f"if ({decided(first, 'w')}) work(i); if ({decided(second, 'w')}) more(i); w += b;"
            )
            return [f"unsigned w = a; for (unsigned i = 0; i < 4; i++) {{ {body} }}"]
        case "device":
            return [f"if ({decided(first, 'device')}) work(b);", between,
                    f"if ({decided(second, 'device')}) more(b);"]  # fmt: skip
        case "partly":
            return [*plain, "if (b & 1) a = b;", last]
        case "recomputed":
            return [*plain, "a = class_of(a) + (b & 31);", last]
    raise AssertionError(kind)


def field_pair(kind: str, random: Random) -> list[str]:
    """Two decisions on a bit of a word behind a pointer, in a loop for "fields"."""
    bit = 256 << random.randrange(8)
    one, two = random.sample([f"p->kind & {bit}", f"!(p->kind & {bit})"], 2)
    pointer = "struct node *p = &nodes[a & 7];"
    between = random.choice(["apart(b);", "p->len = b; apart(a);", "more(a); p->rest = a;"])
    if kind == "fields":
        body = f"{pointer} if ({one}) work(b); {between} if ({two}) more(b); a += b;"
        return [f"for (unsigned i = 0; i < {random.randint(2, 5)}; i++) {{ {body} }}"]
    other = {
        "stored": f"{between} p->kind = (p->kind & ~7u) | 1; apart(b);",
        "aliased": "changes(&nodes[b & 7], a);",
        "walked": "for (unsigned i = 0; i < 3; i++) nodes[sink[i] & 7].kind = b;",
        "moved": "apart(b); p = &nodes[((unsigned)p->next >> 4) & 7];",
        "byte": "((volatile unsigned char *)&nodes[b & 7])[1] = a;",
        "followed": "{ struct node *q = p; for (unsigned i = 0; i < 3; i++) { q->kind = b ^ i; "
        "q = &nodes[q->rest & 7]; apart(i); } p = q; }",
    }
    if kind == "stored":
        one, two = "p->kind & 8", "(p->kind & 7) == 2"
    return [pointer, f"if ({one}) work(b);", other.get(kind, between), f"if ({two}) more(b);"]


def counted_pair(kind: str, random: Random) -> list[str]:
    """A decision, or another loop, about the number of iterations of a loop."""
    few = random.randint(2, 9)
    loop = "for (unsigned i = 0; i < n; i++) { sink[i] ^= b; sink[i + 8] += a; }"
    first = [f"unsigned n = a & 15; if (n < {few}) work(b);", "apart(b);"]
    if kind in ("lengths", "lengthened", "uneven"):
        left = f"15 - n + (b & {few})" if kind == "lengthened" else "15 - n"
        if kind == "uneven":  # the last iteration, or none, moves the counter by another number
            loop = f"for (unsigned i = 0; i < n; i++) {{ if (i == {few}) i += b & 1; work(i); }}"
        return [f"unsigned n = a & 15; {loop}", f"apart(b); n = {left};", loop]
    return [*first, "n += b & 3;" if kind == "grown" else "", loop]


def stopping(kind: str, random: Random) -> str:
    """A loop whose work stops by a counter, or by a bit that is cleared; an input may reset it.

    For "restarted" and "raised" it does so only in iterations without the work.
    """
    rounds, k = random.randint(9, 12), random.choice(["k", "limits"])
    test, step, first = f"{k} < {random.randint(1, 3)}", f"{k}++;", "unsigned k = 0; limits = 0;"
    if kind in ("once", "again", "raised"):
        test, step, first = f"{k} & 8", f"{k} &= ~8u;", "unsigned k = a;"
    changes = [f"if (sink[i] & 2) {k} = b & 8;", f"if (i == b) {k}--;", f"{k} ^= b & 9;"]
    if k == "limits":
        changes.append("*(sink[i] & 2 ? &limits : &words[i & 7]) = b & 8;")
    last = random.choice(changes) if kind in ("recounted", "again") else ""
    if kind in ("restarted", "raised"):
        last = f"else if (sink[i] & 2) {k} = b & 8;"
    body = f"if ((sink[i] & 1) && {test}) {{ {step} work(i); }} {last}"
    return f"{first} for (unsigned i = 0; i < {rounds}; i++) {{ {body} }}"


def table(case: int, work: str) -> str:
    """A switch that compilers make a jump table; much work in one case."""
    others = (f"case {n}: sink[{9 - n}] ^= a * {n + 3}; break;" for n in range(7) if n != case)
    return (
        f"switch (mode & 7) {{ {' '.join(others)} case {case}: {work}; break; default: other++; }}"
    )


def machine(kind: str, random: Random) -> str:
    """A loop over the states of a global word, each of which leads on; much work in the last one.

    The state is the low bits of the word: its other bits are unknown, so that no analysis that
    follows executions knows the word. The word may also be changed through a pointer, or a state
    may be left out by an input.
    """
    states = random.randint(2, 5)
    cases = [f"case {s}: {becomes(str(s + 1))} sink[{s}] += i; break;" for s in range(states - 1)]
    if kind == "skips" and states > 2:
        cases[0] = f"case 0: {becomes(f'(sink[i] & 1 ? {states - 1} : 1)')} break;"
    again = random.choice(["0", "0", "1"])
    cases.append(f"case {states - 1}: work(i); {becomes(again)} break;")
    store = {"machine": "words[i & 7] = b;", "reset": "*(sink[i] & 1 ? &state : &words[1]) = b;"}
    body = f"switch (state & 7) {{ {' '.join(cases)} default: {becomes('0')} }}"
    body += f" {store.get(kind, '')}"
    if states == 2 and kind == "skips":
        body += f" if (sink[i] & 2) {becomes('1')}"
    return f"for (unsigned i = 0; i < {random.randint(3, 12)}; i++) {{ {body} }}"


def becomes(state: str) -> str:
    """The statement that puts a state into the low bits of its word."""
    return f"state = (state & ~7u) | {state};"


def build_pairs(kinds: tuple[str, ...], seed: int, optimise: str) -> PairedProgram:
    """A program with pairs of these kinds, in this order."""
    random = Random(f"{seed} {kinds} {optimise}")
    blocks = ("\n    { " + "\n      ".join(pair(kind, random)) + " }" for kind in kinds)
    body = "".join(blocks)
    source = f"{HEAD}unsigned main(unsigned a, unsigned b) {{{body}\n    return sink[a & 63];\n}}\n"
    return PairedProgram(build(source, *FLAGS, optimise=optimise, link=(CODE,)), kinds, source)
