"""Generated programs of a chosen number of contexts, the same for the same seed.

    python -m bench.program --contexts 40000 --seed 1 build/bench

writes ``program.c``, ``program.facts`` and ``program.elf``. Its shape resembles a capability
kernel: layers of functions of about fifty instructions, each of which calls functions of the next
layer, some under a condition, some in a loop; functions of the lower layers are called from many
places. The facts constrain functions with many contexts.
"""

from __future__ import annotations

import argparse
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Generated", "generate", "main"]

CALLS = 3  # calls of each function to the next layer
FUNCTIONS = 240  # functions in all layers: about 12,000 instructions
TEXT = 0xF001_0000  # cached on the KZM
COMPILER = "arm-none-eabi-gcc"
FLAGS = [
    *("-mcpu=arm1136jf-s", "-marm", "-O2", "-g", "-ffreestanding", "-nostdlib", "-fno-inline"),
    *("-fno-ipa-cp", "-fno-ipa-icf", "-fno-ipa-sra", "-fno-ipa-ra", "-fno-optimize-sibling-calls"),
]
WORK = 10  # statements of straight-line work in each function
ACTIVATIONS = 4  # of a recursive function at a time


@dataclass(slots=True)
class Generated:
    """The text of a program; ``contexts``: of its full inlining, including the root."""

    entry: str
    source: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    contexts: int = 0


@dataclass(slots=True)
class Function:
    """A random function; ``contexts``: of its full inlining, including itself."""

    name: str
    callees: list[Function]
    contexts: int
    recursive: bool = False


def generate(contexts: int, seed: int, *, recursion: bool = True) -> Generated:
    """A program with about ``contexts`` contexts (never fewer), entered at ``entry``."""
    draw = random.Random(seed)
    program = Generated("entry")
    program.source += [
        "typedef unsigned int word;",
        "static volatile word table[256];",
        "static word state[64];",
    ]
    layers = [leaves(program, draw, recursion)]
    while layers[-1][0].contexts * CALLS * 2 < contexts:
        numbers = range(width(contexts))
        layers.append([inner(program, draw, len(layers), i, layers) for i in numbers])
    calls: list[Function] = []
    total = 1
    while total < contexts:
        callee = layers[-1][len(calls) % len(layers[-1])]
        if contexts - total < callee.contexts:
            fitting = [f for layer in layers for f in layer if f.contexts <= contexts - total]
            callee = draw.choice(fitting[-4:]) if fitting else layers[0][0]
        calls.append(callee)
        total += callee.contexts
    program.contexts = total
    program.source.append("word entry(word a, word b)\n{")
    program.source += [f"    a += {f.name}(a, b + {i});" for i, f in enumerate(calls)]
    program.source.append("    return a;\n}")
    return program


def width(contexts: int) -> int:
    """Functions in a layer, so that all layers have ``FUNCTIONS`` together."""
    layers, reach = 1, 1
    while reach * CALLS * 2 < contexts:
        reach = reach * CALLS + 1
        layers += 1
    return max(CALLS + 1, FUNCTIONS // layers)


def leaves(program: Generated, draw: random.Random, recursion: bool) -> list[Function]:
    """The lowest layer: loops over tables; one of them calls itself."""
    made = []
    for i in range(CALLS * 4):
        name = f"leaf{i}"
        recursive = recursion and i == 0
        again = f"    if (a & {ACTIVATIONS - 1}) x += {name}(a - 1, b);\n" if recursive else ""
        body = work(draw) + f"    if (b & 1) {{\n{counted_loop(draw)}    }}\n{again}"
        define(program, name, body)
        if recursive:
            program.facts.append(f"recursion of {name} at most {ACTIVATIONS}")
        made.append(Function(name, [], ACTIVATIONS if recursive else 1, recursive))
    return made


def inner(
    program: Generated, draw: random.Random, layer: int, number: int, layers: list[list[Function]]
) -> Function:
    """A function that calls ``CALLS`` of the layer below."""
    below = layers[-1]
    callees = draw.sample(below[1:] if below[0].recursive else below, CALLS)
    if below[0].recursive and number % 4 == 0:
        callees[0] = below[0]
    name = f"layer{layer}_{number}"
    body = work(draw)
    always, first, second = callees
    body += f"    x += {always.name}(x, a);\n"
    body += f"    if (b & {1 << draw.randrange(8)}) x += {first.name}(a, x);\n"
    body += counted_loop(draw)
    body += f"    if (x & {1 << draw.randrange(8)}) x ^= {second.name}(x, b);\n"
    define(program, name, body)
    if draw.random() < 0.3 and not first.recursive and not second.recursive:
        program.facts.append(f"{first.name} conflicts with {second.name} in {name}")
    return Function(name, callees, 1 + sum(f.contexts for f in callees), False)


def define(program: Generated, name: str, body: str) -> None:
    """Add a function of two words."""
    program.source.append(f"word {name}(word a, word b)")
    program.source.append(f"{{\n    word x = a;\n{body}    return x;\n}}")


def work(draw: random.Random) -> str:
    """Straight-line work on registers, a table at an unknown index, and constant places."""
    lines = []
    for _ in range(WORK):
        shift, place = draw.randrange(1, 31), draw.randrange(64)
        lines.append(
            draw.choice(
                [
                    f"x += (a << {shift}) ^ b;",
                    f"x ^= state[{place}] + (b >> {shift});",
                    f"state[{place}] = x + b;",
                    f"x -= table[(x >> {shift % 8}) & 255];",
                ]
            )
        )
    return "".join(f"    {line}\n" for line in lines)


def counted_loop(draw: random.Random) -> str:
    """A loop whose bound the binary determines."""
    count, place = draw.randrange(3, 17), draw.randrange(32)
    return f"    for (word i = 0; i < {count}; i++) x += table[{place} + i] ^ i;\n"


def build(program: Generated, folder: Path) -> Path:
    """Write and compile; the ELF's facts file lies beside it. Raises CalledProcessError."""
    folder.mkdir(parents=True, exist_ok=True)
    source, elf = folder / "program.c", folder / "program.elf"
    source.write_text("\n".join(program.source) + "\n")
    (folder / "program.facts").write_text("\n".join(program.facts) + "\n")
    link = [f"-Wl,-Ttext={TEXT:#x}", f"-Wl,-e,{program.entry}"]
    subprocess.run([COMPILER, *FLAGS, *link, str(source), "-o", str(elf)], check=True)
    return elf


def main(arguments: Sequence[str] | None = None) -> None:
    """See ``--help``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--contexts", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-recursion", action="store_true")
    options = parser.parse_args(arguments)
    program = generate(options.contexts, options.seed, recursion=not options.no_recursion)
    elf = build(program, options.folder)
    print(f"{elf}: {program.contexts:,} contexts when fully inlined, {len(program.facts)} facts")


if __name__ == "__main__":
    main()
