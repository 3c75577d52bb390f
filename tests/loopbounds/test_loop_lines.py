"""Source lines that name loops: only where a fact about the line is accepted in all functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopbounds.loop_lines import loop_lines
from quoll.facts.line_anchors import LineAnchors
from quoll.image.image import Image
from quoll.inlining.function_shape import shape_of
from tests.testing.quoll.building import build
from tests.testing.quoll.sketch import extracted

SOURCE = """\
#define N __attribute__((noinline))
struct item { struct item *volatile next; } items; int volatile sink;
#define WALK while ((at = at->next)) sink++; return 1; } static N int once(struct item *at) { \\
    return at->next != 0;
N int walk(struct item *at) { WALK }
int main(int n) { return walk(&items) + CALLED; }
"""


@pytest.mark.parametrize(("called", "named"), [("1", True), ("once(&items)", False)])
def test_a_line_with_code_outside_loops_of_another_function_names_none(
    called: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proposal with such a line was refused where the other function is analysed by itself."""
    elf = build(SOURCE.replace("CALLED", called), optimise="-O1")
    monkeypatch.chdir(elf.parent)
    image = Image.load(elf)
    functions = extracted(image).functions
    shapes = [shape_of(cfg, image) for cfg in functions.values()]
    headers = {header for shape in shapes for _, nest in shape.nest for header in nest}
    (header,) = headers
    found = dict(loop_lines(functions.values(), headers, LineAnchors(image, elf, Path())))
    if named:
        assert found[header].headers == headers
        assert found[header].place.startswith("prog.c:5~")
    else:
        assert not found
