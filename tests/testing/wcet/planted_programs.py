"""Random C programs with one infeasible pair each: calls that no execution makes together.

``early`` and ``late`` are costly functions. Whatever the program starts with, the numbers of their
executions satisfy ``early + late <= limit``, and the control flow alone admits more. Both compilers
build a program, at each level, for ARM and Thumb state.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from quoll.inlining.sharing import SummarySettings
from tests.testing.wcet.infeasible_programs import CONDITIONS, decided
from tests.testing.wcet.programs import CODE, FLAGS

__all__ = ["ALWAYS", "FAMILIES", "PlantedProgram", "planted"]

HEAD = """
#define NOINLINE __attribute__((noinline))
volatile unsigned sink[64], other, counts[16];
unsigned mode, state, flags, words[8];
struct node { unsigned kind, len; struct node *next; unsigned rest; };
struct node nodes[8] __attribute__((aligned(16)));
NOINLINE void early(unsigned n) { for (unsigned i = 0; i < 12; i++) sink[i] += n; }
NOINLINE void late(unsigned n) { for (unsigned i = 0; i < 9; i++) sink[i + 20] ^= n; }
NOINLINE void apart(unsigned n) { other = n; sink[40] = n; }
"""
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
ONCE_LARGE = SummarySettings()
ALWAYS = SummarySettings(contexts=0, least=2)
MACHINES = {  # by state: the processor, and the board
    False: ("arm1136jf-s", "kzm"),
    True: ("cortex-a8", "cubieboard"),
}


@dataclass(frozen=True)
class PlantedProgram:
    """An ELF with its family; ``limit``: of ``early + late``, in every execution of ``main``."""

    elf: Path
    family: str
    source: str
    limit: int
    platform: str
    thumb: bool
    built: str
    sharing: SummarySettings
    hidden: bool  # in a function with a summary


@dataclass(frozen=True)
class Planted:
    """Functions, statements of ``main(a, b)``, and the limit of ``early + late``."""

    functions: str
    statements: tuple[str, ...]
    limit: int = 1
    sharing: SummarySettings = ONCE_LARGE
    hidden: bool = False


def between(random: Random) -> str:
    """A statement that leaves the tested word alone."""
    return random.choice(["", "apart(b);", "sink[b & 63] = a;", "words[3] = b; apart(a);"])


def tests(random: Random, word: str) -> tuple[str, str]:
    """Two conditions on a word that exclude each other, in any order."""
    first, second = random.choice(CONDITIONS)
    if random.random() < 0.5:
        first, second = second, first
    return decided(first, word), decided(second, word)


def correlated(random: Random) -> Planted:
    """Two branches on one argument, global word, or both together."""
    word = random.choice(["a", "mode", "a + mode", "a & state"])
    one, two = tests(random, word)
    body = [f"if ({one}) early(b);", between(random), f"if ({two}) late(b);"]
    if random.random() < 0.4:
        body = [f"for (unsigned i = 0; i < 4; i++) {{ {' '.join(body)} a += b; }}"]
        return Planted("", tuple(body), 4)
    return Planted("", tuple(body))


def types(random: Random) -> Planted:
    """Two switches over the type of an object, in functions that may be inlined."""
    count = random.choice([4, 7])
    one, two = random.sample(range(count), 2)
    how = random.choice(["static inline", "static NOINLINE"])
    functions = "".join(
        f"{how} void {name}(struct node *p, unsigned n)\n"
        f"{{ switch (p->kind & 7) {{ {cases(count, case, work, random)} }} }}\n"
        for name, case, work in (("opens", one, "early"), ("closes", two, "late"))
    )
    body = ["struct node *p = &nodes[a & 7];", "opens(p, b);", random.choice(["", "p->len = b;"])]
    return Planted(functions, (*body, "apart(a);", "closes(p, b);"))


def cases(count: int, case: int, work: str, random: Random) -> str:
    """The cases of a switch, one of which calls ``work``."""
    rows = [f"case {n}: sink[{random.randrange(60)}] ^= n * {n + 3}; break;" for n in range(count)]
    rows[case] = f"case {case}: {work}(n); break;"
    return " ".join([*rows, "default: other++;"])


def modes(random: Random) -> Planted:
    """A mode that two functions test; one of them may be called by a third one."""
    one, two = tests(random, "mode")
    functions = f"static NOINLINE void begins(unsigned n) {{ if ({one}) early(n); apart(n); }}\n"
    functions += f"static NOINLINE void finishes(unsigned n) {{ if ({two}) late(n); other = n; }}\n"
    functions += "static NOINLINE void middle(unsigned n) { apart(n); finishes(n + 1); }\n"
    return Planted(
        functions, ("begins(b);", between(random), f"{random.choice(['middle', 'finishes'])}(a);")
    )


def loops(random: Random) -> Planted:
    """Two loops of which one is executed, or two over one length."""
    first = "for (unsigned i = 0; i < n; i++) early(i);"
    second = "for (unsigned i = 0; i < n; i++) late(i);"
    length = random.choice([3, 7])
    if random.random() < 0.5:
        one, two = tests(random, "mode")
        body = [f"if ({one}) {{ {first} }}", between(random), f"if ({two}) {{ {second} }}"]
        return Planted("", (f"unsigned n = b & {length};", *body), length)
    body = [f"unsigned n = a & {length};", first, between(random), f"n = {length} - n;", second]
    return Planted("", tuple(body), length)


def callees(random: Random) -> Planted:
    """The result of a callee of three levels, and its work, against a branch of the caller."""
    functions = results(random)
    inside = random.random() < 0.5
    body = ["unsigned c = top(a, b);", "" if inside else "if (c == 7) early(b);", between(random)]
    leaf = "early(m); return 7;" if inside else "sink[50] = m; return 7;"
    other = random.choice(["c == 3", "c != 7", "c < 5"])
    return Planted(functions.replace("LEAF", leaf), (*body, f"if ({other}) late(b);"))


def results(random: Random) -> str:
    """Functions ``top``, ``middle`` and ``leaf``; LEAF stands for the branch of result 7."""
    bit = 1 << random.randrange(4)
    return (
        f"static NOINLINE unsigned leaf(unsigned n, unsigned m)\n"
        f"{{ if (n & {bit}) {{ LEAF }} if (n & 32) return 3; sink[51] = n; return 0; }}\n"
        "static NOINLINE unsigned middle(unsigned n, unsigned m)\n"
        "{ unsigned r = leaf(n, m); sink[52] = m; return r; }\n"
        "static NOINLINE unsigned top(unsigned n, unsigned m)\n"
        "{ if (m == 0) return 3; unsigned r = middle(n, m); other = n; return r; }\n"
    )


def summaries(random: Random) -> Planted:
    """The result of a function with a summary, which is called twice, against branches."""
    functions = results(random)
    inside = random.random() < 0.5
    leaf = "early(m); return 7;" if inside else "sink[50] = m; return 7;"
    body = ["apart(top(b, a) & 1);" if not inside else "apart(a);", "unsigned c = top(a, b);"]
    body += ["" if inside else "if (c == 7) early(b);", between(random), "if (c != 7) late(b);"]
    extra = ["words[1] = middle(b, 1);"] if inside else []
    return Planted(functions.replace("LEAF", leaf), (*extra, *body), 1 + len(extra), ALWAYS, inside)


def saturating(random: Random) -> Planted:
    """A counter that stops at a limit, and the work of its steps."""
    limit, length = random.randint(1, 3), random.randint(5, 9)
    word = random.choice(["k", "words[2]", "state"])
    step = random.choice([f"{word} = {word} + 1;", f"{word}++;"])
    body = f"if ((sink[i] & 1) && {word} < {limit}) {{ {step} early(i); }} else sink[i + 30] = b;"
    if random.random() < 0.4:
        body = f"if ((sink[i] & 1) && {word} != {limit}) {{ {step} early(i); }}"
    init = f"unsigned k = 0; {word} = 0;"
    return Planted("", (init, f"for (unsigned i = 0; i < {length}; i++) {{ {body} }}"), limit)


def cleared(random: Random) -> Planted:
    """A bit that is cleared when it is handled."""
    bit = 1 << random.randrange(10)
    word = random.choice(["a", "flags", "nodes[2].kind"])
    first = f"if ({word} & {bit}) {{ early(b); {word} &= ~{bit}u; }}"
    if random.random() < 0.35:
        once = f"if (({word} & {bit}) && (sink[i] & 2)) {{ {word} &= ~{bit}u; early(i); }}"
        return Planted("", (f"for (unsigned i = 0; i < 5; i++) {{ {once} apart(i); }}",))
    return Planted("", (first, between(random), f"if ({word} & {bit}) late(b);"))


FAMILIES: Mapping[str, Callable[[Random], Planted]] = {
    "correlated": correlated,
    "types": types,
    "modes": modes,
    "loops": loops,
    "callees": callees,
    "summaries": summaries,
    "saturating": saturating,
    "cleared": cleared,
}


def planted(family: str, seed: int) -> PlantedProgram:
    """The program of a family and a seed."""
    random = Random(f"{family} {seed}")
    pair = FAMILIES[family](random)
    body = "\n    ".join(filter(None, pair.statements))
    source = f"{HEAD}{pair.functions}unsigned main(unsigned a, unsigned b) {{\n    {body}\n"
    source += "    return sink[a & 63];\n}\n"
    clang, thumb = random.random() < 0.5, random.random() < 0.5
    level = random.choice(LEVELS)
    cpu, platform = MACHINES[thumb]
    elf = built(source, clang=clang, thumb=thumb, cpu=cpu, level=level)
    name = f"{'Clang' if clang else 'GCC'} {level} {'Thumb' if thumb else 'ARM'}"
    return PlantedProgram(
        elf, family, source, pair.limit, platform, thumb, name, pair.sharing, pair.hidden
    )


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quoll-planted-")


def built(source: str, *, clang: bool, thumb: bool, cpu: str, level: str) -> Path:
    """The ELF of ``source`` by one of the compilers."""
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    (folder / "prog.c").write_text(source)
    gcc = ["arm-none-eabi-gcc"]
    compiler = ["clang", "--target=arm-none-eabi", "-mfloat-abi=soft"] if clang else gcc
    flags = [flag for flag in FLAGS if not (clang and "tree-loop" in flag)]
    machine = [f"-mcpu={cpu}", "-mthumb" if thumb else "-marm"]
    compiled = [*compiler, *machine, level, "-g", "-ffreestanding", *flags, "-c", "prog.c"]
    linked = [*gcc, *machine, "-nostdlib", "-Wl,--build-id=none", "-Wl,-e,main", CODE]
    linked += ["-Wl,--no-warn-rwx-segments", "prog.o", "-o", "prog.elf"]
    for command in (compiled, linked):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "prog.elf"
