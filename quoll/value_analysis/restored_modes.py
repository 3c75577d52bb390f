"""Functions that write status words of unknown mode, checked in every calling context (rule 49).

Extraction assumes that such a word, an argument or a word in memory, has the mode in which it is
written: the mode, and with it sp and lr, then stays. Values in contexts follow the word from the
``mrs`` that read it.
"""

from __future__ import annotations

from quoll.arm.status import StatusField, status_written
from quoll.cfg.cfg import Program
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.value_analysis.value_results import ValueResults

__all__ = ["unproved_modes"]


def unproved_modes(values: ValueResults, program: Program, image: Image) -> frozenset[int]:
    """The functions of ``program.restoring`` of which values do not prove that the mode stays.

    Raises ControlFlowError for one that surely writes another mode.
    """
    found: set[int] = set()
    graph = values.graph
    for number, node in enumerate(graph.nodes if program.restoring else ()):
        function = graph.contexts[node.context].function
        if function not in program.restoring or not values.reached(number):
            continue
        for index, insn in enumerate(node.block.insns):
            if StatusField.CONTROL not in status_written(insn):
                continue
            stays = values.mode_stays(number, index)
            if stays is None:
                found.add(function)
            elif not stays:
                raise ControlFlowError(
                    f"{insn.text} changes the mode here, though the function was taken to stay in "
                    "the mode in which it is called: its return uses another sp and lr than its "
                    "call",
                    where=image.place(insn.addr),
                    hint="state where its returns go: targets of PLACE are PLACE; or that the path "
                    "ends there: path must end at PLACE",
                )
    return frozenset(found)
