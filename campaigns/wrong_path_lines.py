"""Misses on the wrong paths of branches: ``make campaign-wrong_path_lines ARGS=--write``.

For the shipped kernel on each board: the wrong path of each conditional branch that is not taken
but predicted to be, for the bytes that its core may fetch ahead, and the misses that a bound would
charge for it. With ``--write`` the table in ``docs/pipeline.md`` is replaced.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from statistics import median

from cache.wrong_paths import UNKNOWN_CODE, InsnAt, WrongPaths, constant_code
from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import KERNEL
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import Insn
from quoll.image.image import Image
from tests.testing.harness import build
from wcet.platforms.platform_model import load

__all__ = ["main"]

BOARDS = ("kzm", "cubieboard")
KINDS = {
    BranchPrediction.DYNAMIC: "off",
    BranchPrediction.ANY_RETURNS: "on, any contents",
}
HEAD = ("board", "bytes ahead", "return stack", "branches", "to unknown code", "misses, median",
        "most")  # fmt: skip


def branches(image: Image, code: InsnAt) -> Iterator[Insn]:
    """The conditional branches with a direct target in the functions of a kernel."""
    functions = {s.addr: s for s in image.symbols.symbols if s.kind == "func" and not s.thumb}
    for symbol in functions.values():
        for addr in range(symbol.addr, symbol.addr + symbol.size, 4):
            insn = code(addr, symbol.thumb)
            if insn is not None and insn.conditional and insn.target is not None:
                yield insn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs/pipeline.md")
    options = parser.parse_args()
    rows = []
    for board in BOARDS:
        image, hierarchy = (
            Image.load(build.kernel(f"{board}-after", *KERNEL)),
            load(board).hierarchy,
        )
        code = constant_code(image)
        for kind, returns in KINDS.items():
            paths = WrongPaths(hierarchy.l1i, hierarchy.fetch_ahead, kind, code)
            found = [paths.at_target(insn) for insn in branches(image, code)]
            unknown = sum(UNKNOWN_CODE in wrong.lines for wrong in found)
            most = [wrong.most for wrong in found]
            cells = (len(found), unknown, median(most), max(most))
            ahead = f"{hierarchy.fetch_ahead}"
            rows.append((board, ahead, returns, *(f"{cell:,.0f}" for cell in cells)))
    table = markdown(HEAD, rows)
    print(table)
    write(options, "pipeline.md", {"wrong paths": table})
    return 0


if __name__ == "__main__":
    sys.exit(main())
