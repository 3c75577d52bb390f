"""Programs as short text, for expectations drawn by hand: one block per line."""

from __future__ import annotations

import re
from textwrap import dedent

from quoll.cfg.cfg import Block, Cfg, Program
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import Facts
from quoll.image.image import Image
from tests.testing.quoll.building import build
from tests.testing.quoll.invariants import verify_program

__all__ = ["assemble", "drawn", "extracted", "sketch"]

HEADER = ".syntax unified\n.text\n.arm\n.global main\n.type main, %function\n"


def assemble(text: str, *flags: str, thumb: bool = False, cpu: str = "arm1136jf-s") -> Image:
    """The image of assembly ``text`` that defines ``main``."""
    source = HEADER + (".thumb\n.thumb_func\n" if thumb else "") + text + "\n"
    return Image.load(build(source, *flags, language="S", cpu=cpu))


def extracted(
    image: Image,
    *names: str,
    facts: Facts | None = None,
    ends: frozenset[int] | None = None,
) -> Program:
    """The verified program of the entries ``names``, ``main`` if there are none."""
    entries = []
    for name in names or ("main",):
        symbol = image.symbol(name)
        assert symbol, name
        entries.append(symbol.addr | symbol.thumb)
    program = extract(image, entries, locate(facts or Facts(), image), ends)
    verify_program(program)
    return program


def drawn(
    text: str,
    expected: str,
    *names: str,
    thumb: bool = False,
    facts: Facts | None = None,
    ends: frozenset[int] | None = None,
) -> None:
    """Compare the sketch of assembly ``text`` with a drawing."""
    image = assemble(text, thumb=thumb, cpu="cortex-a8" if thumb else "arm1136jf-s")
    program = extracted(image, *names, facts=facts, ends=ends)
    assert _shortened(sketch(image, program)) == dedent(expected).strip()


def _shortened(text: str) -> str:
    """The drawing with the reasons that values give in few words."""
    text = text.replace(
        "the target does not come from constants and an index with few values",
        "the target is not constant",
    )
    text = text.replace("some targets are outside the function and start no other", "too far")
    text = re.sub(r"its frame is not followed beyond (.*) at 0x\w+ <.*", r"lost at \1", text)
    return text.replace(" as it was when the function was entered", " at entry")


def sketch(image: Image, program: Program) -> str:
    """``block (instructions): possible transfers`` for each block, below its function's name.

    Blocks are named by the nearest label; labels of the form ``x1`` are part of the test.
    """
    lines = []
    for entry in sorted(program.functions):
        cfg = program.functions[entry]
        lines.append(f"{cfg.name}{'' if cfg.returns else ' never returns'}")
        lines += [f"  {_block(image, cfg, block)}" for block in cfg.blocks]
    lines += [f"? {_label(image, u.addr)}: {u.reason}" for u in program.unresolved]
    return "\n".join(lines)


def _block(image: Image, cfg: Cfg, block: Block) -> str:
    effects = [f"{'tail ' if block.tail else ''}calls {_label(image, c)}" for c in block.calls]
    effects += ["returns"] * block.returns + ["exits"] * block.exits
    effects += [
        f"{edge.kind.value} {_label(image, cfg.blocks[edge.dst].addr)}"
        for edge in cfg.successors(block.index)
    ]
    return f"{_label(image, block.addr)} ({len(block.insns)}): {', '.join(effects) or 'stops'}"


def _label(image: Image, addr: int) -> str:
    found = image.symbol_at(addr)
    if found is None:
        return f"{addr:#x}"
    return f"{found[0].name}+{found[1]}" if found[1] else found[0].name
