"""No internal defect in loop bounds: ``make campaign-loop_defects``.

    newlib      every function of libc, libm and libgcc, multilib by multilib
    picolibc    the same of picolibc
    random      random C programs: loops of every kind, soft float, leading zeros and overflow
                flags, each at -O0, -O1, -O2, -O3 and -Os, in ARM and in Thumb state

Each function is analysed as ``wcet loops FILE --entry FUNCTION --no-cache`` does. A defect is an
exception that is no ``WcetError``, or a query that the solver refuses, such as an ill-typed model.
Functions that take longer than ``--seconds`` by the clock are skipped, and counted. Defects go to
standard output when they are found, with a command that repeats them; the status is 1 if there is
any.

``--seed S`` selects the order of functions and the programs; ``--minutes M`` starts no function
after M minutes by the clock; ``--programs N`` is the number of random programs, ``--builds N`` the
number of builds of each library, and ``--first N`` continues a stopped campaign at the N-th.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from campaigns.corpora import corpus
from campaigns.extraction import entries_of
from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from loopbounds.recursion import find_depths, with_depths
from quoll.cfg.call_graph import call_graph
from quoll.errors import WcetError
from quoll.extraction.extract import extract
from quoll.facts.located import NO_FACTS
from quoll.image.image import Image
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand, without_edges
from quoll.inlining.sharing import expansion
from quoll.value_analysis.value_results import analyse
from tests.testing.loopbounds.programs import FLAGS, KINDS, random_program
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import Writer

__all__ = ["Sweep", "main"]

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
CONTEXTS = 400  # at most, of a function with its callees
CORPORA = ("newlib", "picolibc", "random")
REFUSED = (
    "TYPE ERROR",
    "not understood",
    "Parser error",
    "out of range",
    "exit status",
    "cannot be said",
)
TOLD = 120  # seconds between two reports of progress
AGAIN = 2  # seconds until an exception that was swallowed (in a destructor, say) is raised again


class OutOfTime(BaseException):
    """One function has taken too long; no other code may catch it."""


class Sweep:
    """The findings so far."""

    def __init__(self, seconds: int, budget: int, until: float) -> None:
        self.seconds, self.until = seconds, until
        self.options = BoundOptions(Budget(seconds=budget), workers=0)
        self.counts: Counter[str] = Counter()
        self.defects: Counter[str] = Counter()
        self._told = time.monotonic()

    def function(self, image: Image, entry: int, name: str) -> None:
        """Bound the loops of one function, with all that it calls."""
        self.counts["functions"] += 1
        if time.monotonic() > self._told + TOLD:
            self._told = time.monotonic()
            print(f"so far: {self}", file=sys.stderr, flush=True)
        try:
            with _limited(self.seconds):
                self._bounds(image, entry, name)
        except OutOfTime:
            self.counts["out of time"] += 1
        except WcetError as error:
            self.counts[f"refused: {type(error).__name__}"] += 1
        except Exception as error:  # the defect that is looked for
            frames = traceback.extract_tb(error.__traceback__)
            chain = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-6:]))
            self._defect(f"{type(error).__name__}: {str(error)[:80]} ({chain})", name)

    def _bounds(self, image: Image, entry: int, name: str) -> None:
        program = extract(image, [entry])
        if expansion(call_graph(program), entry & ~1).total() > CONTEXTS:
            self.counts["too many contexts"] += 1
            return
        depths = find_depths(program, entry, image, NO_FACTS, self.options, called=True)
        deep = with_depths(program, entry, image, depths)
        plain = guided_in_contexts(expand(deep, entry, image), image, NO_FACTS)
        values = analyse(plain, image)
        graph = without_edges(plain, values.dead_edges, image)
        if not graph.loops:
            self.counts["without loops"] += 1
            return
        known = values.within(graph) or analyse(graph, image)
        bounds = bound_loops(graph, image, known, NO_FACTS, self.options, called=True)
        self.counts["loops"] += len(bounds)
        self.counts["bounded"] += sum(b.bound is not None for b in bounds)
        for bound in bounds:
            if bound.failed:
                self.counts["solver failed"] += 1
                print(f"{name}: {bound.reason}", flush=True)
                if any(text in str(bound.reason) for text in REFUSED):
                    self._defect(str(bound.reason), name)

    def __str__(self) -> str:
        return ", ".join(f"{text} {n:,}" for text, n in sorted(self.counts.items()))

    def _defect(self, text: str, name: str) -> None:
        self.counts["defects"] += 1
        self.defects[text] += 1
        print(f"DEFECT {name}: {text}", flush=True)

    def functions_of(self, name: str, chance: random.Random, most: int | None, first: int) -> None:
        """Every function of every program of a corpus, or of ``most`` of them, in random order."""
        programs = corpus(name)[:most]
        entries = [(elf, entry) for elf in programs for entry in entries_of(Image.load(elf))]
        chance.shuffle(entries)
        images = {elf: Image.load(elf) for elf in programs}
        self.counts["functions there are"] = len(entries)
        for elf, entry in entries[first:]:
            if time.monotonic() > self.until:
                return
            image = images[elf]
            self.function(image, entry, f"{elf.stem} {image.place(entry & ~1)}")

    def programs(self, seed: int, numbers: range) -> None:
        """Random programs of these numbers, each at one level after the other."""
        for number, level in ((n, o) for n in numbers for o in LEVELS):
            if time.monotonic() > self.until:
                return
            chance = random.Random(f"{seed} {number}")
            self.counts["programs"] += 1
            for text, flags, thumb in _sources(chance):
                try:
                    elf = build(text, *flags, optimise=level, thumb=thumb, link=("-lgcc",))
                except AssertionError:
                    self.counts["not linked"] += 1
                    continue
                image = Image.load(elf)
                entry = image.symbol("main")
                assert entry is not None
                where = f"random {seed} {number} {level} {'thumb' if thumb else 'arm'}"
                self.function(image, entry.addr | entry.thumb, where)


def _sources(chance: random.Random) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """One program: its text, flags, and whether it is Thumb code."""
    thumb = chance.random() < 0.3
    which = chance.randrange(3)
    if which == 0:
        kind = chance.choice(KINDS)
        yield random_program(chance, kind), FLAGS.get(kind, ()), False
    elif which == 1:
        yield Writer(chance).program(), ("-fno-builtin",), thumb
    else:
        yield _mixed(chance), ("-fno-builtin", "-msoft-float"), thumb


TYPES = ("float", "double", "int", "unsigned", "long long", "unsigned long long", "short")


def _mixed(chance: random.Random) -> str:
    """Loops over values of every type, leading zeros and sums that overflow among them."""
    kinds = [chance.choice(TYPES) for _ in range(3)]
    names = [f"v{i}" for i in range(3)]
    lines = ["volatile unsigned sink; unsigned table[64];", "int main(unsigned a, int b) {"]
    lines += [
        f"  {k} {n} = ({k})(a >> {chance.randrange(8)});" for k, n in zip(kinds, names, strict=True)
    ]
    for _ in range(chance.randint(1, 3)):
        lines.append("  " + _loop(chance, names, kinds))
    lines.append(f"  return (int)({' + '.join(names)});\n}}\n")
    return "\n".join(lines)


def _loop(chance: random.Random, names: list[str], kinds: list[str]) -> str:
    i = chance.randrange(3)
    v, kind = names[i], kinds[i]
    w = chance.choice(names)
    body = chance.choice(
        [
            f"{v} += ({kind})sink;",
            f"{v} = {v} * 2 + ({kind}){w};",
            f"if (__builtin_add_overflow((int){w}, b, &b)) {v}++; sink = b;",
            f"if (__builtin_sub_overflow(b, (int){w}, &b)) break;",
            f"{v} -= __builtin_clz((unsigned){w} | 1); table[a & 63] = b;",
            f"{v} = {v} / 3; sink++;",
            f"a = (a >> 1) | (a << 31); {v} += (int)__builtin_popcount(a);",
            f"unsigned long long t = (unsigned long long)a * b; {v} += ({kind})(t >> 32);",
        ]
    )
    return chance.choice(
        [
            f"for (unsigned i = 0; i < (a & 31); i++) {{ {body} }}",
            f"for ({v} = 0; {v} < ({kind})(a & 15); {v}++) {{ {body} }}",
            f"while ({v} > ({kind})1) {{ {body} {v} = {v} / 2; }}",
            f"for (int s = __builtin_clz(a | 1); s < 31; s++) {{ {body} }}",
            f"do {{ {body} }} while (__builtin_clz(a) < 8 && (a <<= 1));",
            f"for (int s = 31; s >= 0; s--) {{ if ((a >> s) & 1) {{ {body} }} }}",
            "while (b > 0 && !__builtin_add_overflow(b, -(int)(a & 7) - 1, &b)) sink = b;",
        ]
    )


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Raise ``OutOfTime`` in the body after ``seconds``, and again; never behind the body."""
    inside = True

    def stop(signum: int, frame: FrameType | None) -> None:
        if inside:
            raise OutOfTime

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20, help="for a function, by the clock")
    parser.add_argument("--time-limit", type=int, default=2, help="of processor time for a loop")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--programs", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0, help="begin with this function or program")
    parser.add_argument("--builds", type=int, help="of each library (default: all)")
    options = parser.parse_args()
    found = 0
    for name in options.corpora:
        until = time.monotonic() + 60 * options.minutes
        sweep = Sweep(options.seconds, options.time_limit, until)
        try:
            if name == "random":
                last = options.first + options.programs
                sweep.programs(options.seed, range(options.first, last))
            else:
                sweep.functions_of(name, random.Random(options.seed), options.builds, options.first)
        except (KeyboardInterrupt, subprocess.SubprocessError) as error:
            print(f"{name}: ended by {type(error).__name__}", flush=True)
        print(f"{name}: {sweep}", flush=True)
        for text, n in sweep.defects.most_common():
            print(f"    {n:,} {text}", flush=True)
        found += sweep.defects.total()
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
