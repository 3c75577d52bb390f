# SPDX-License-Identifier: BSD-2-Clause
"""Invocations with too little, with empty or occupied slots, and of the wrong kind."""

from __future__ import annotations

from itertools import product

from kernels.bilby.verification.fuzz.script import DIRECTORY, NODE, TCB, Script
from kernels.bilby.verification.spec.layout import API, message

WORDS, CAPS = API["BUFFER_WORDS"], API["BUFFER_CAPS"]
LABELS = {name: value for name, value in API.items() if name.startswith("LABEL_")}
SOME = 4  # objects made at once


def _call(script: Script, address: int, label: int, words: list[int], caps: list[int]) -> None:
    """Make a call; its outcome is compared with the specification."""
    buffer = {WORDS + i: words[i] for i in range(4, len(words))}
    buffer |= {CAPS + i: cap for i, cap in enumerate(caps)}
    sent = message(len(words), len(caps), 0, label)
    script.syscall("CALL", address, sent, words[:4], buffer)
    assert script.runs(TCB)


def words_and_capabilities_that_are_missing(script: Script) -> None:
    """As many words and capabilities as an invocation needs, less one of either."""
    empty, to = script.slots(), script.slots()
    cnode, thread, frame = script.make("CNODE", 2), script.make("TCB"), script.make("FRAME_4K")
    table, handler = script.make("PAGE_TABLE"), script.slots()
    untyped, lines = API["ROOT_UNTYPED"] + 1, API["ROOT_IRQ_CONTROL"]
    script.invoke(lines, "IRQ_GET", [9, handler, 32], [NODE])
    needs: list[tuple[int, str, list[int], list[int]]] = [
        (untyped, "UNTYPED_RETYPE", [API["TYPE_ENDPOINT"], 0, 0, 0, to, 1], [NODE]),
        (NODE, "CNODE_COPY", [to, 32, frame, 32, 7], [NODE]),
        (NODE, "CNODE_MINT", [to, 32, cnode, 32, 7, 3], [NODE]),
        (NODE, "CNODE_MOVE", [to, 32, frame, 32], [NODE]),
        (NODE, "CNODE_MUTATE", [to, 32, cnode, 32, 3], [NODE]),
        (NODE, "CNODE_ROTATE", [to, 32, frame, 32, cnode, 32], [NODE, NODE]),
        (NODE, "CNODE_DELETE", [empty, 32], []),
        (NODE, "CNODE_REVOKE", [empty, 32], []),
        (NODE, "CNODE_RECYCLE", [empty, 32], []),
        (thread, "TCB_CONFIGURE", [0, 0], [NODE, DIRECTORY, frame]),
        (thread, "TCB_WRITE_REGISTERS", [0x1000] * 16, []),
        (thread, "TCB_SET_PRIORITY", [5], []),
        (table, "PAGE_TABLE_MAP", [0x40000000], [DIRECTORY]),
        (frame, "FRAME_MAP", [0x40000000, 3, 0], [DIRECTORY]),
        (frame, "FRAME_CLEAN", [0, 32], []),
        (frame, "FRAME_PUBLISH", [0, 32], []),
        (lines, "IRQ_GET", [10, to, 32], [NODE]),
        (handler, "IRQ_SET_NOTIFICATION", [], [frame]),
        (API["ROOT_ASID_CONTROL"], "ASID_MAKE_POOL", [to, 32], [untyped, NODE]),
        (API["ROOT_ASID_POOL"], "ASID_ASSIGN", [], [DIRECTORY]),
    ]
    for target, name, words, caps in needs:
        label = LABELS[f"LABEL_{name}"]
        for length in range(len(words)):
            _call(script, target, label, words[:length], caps)
        for wrong in (empty, thread, untyped, handler, 1 << 20):
            for place in range(len(caps)):
                _call(script, target, label, words, [*caps[:place], wrong, *caps[place + 1 :]])
        for count in range(len(caps)):
            _call(script, target, label, words, caps[:count])


def places_that_are_empty_or_occupied(script: Script) -> None:
    empty, occupied, frame = script.slots(), script.make("ENDPOINT"), script.make("FRAME_4K")
    depths = (0, 1, 32, 33)
    for name, more in (("COPY", [7]), ("MINT", [7, 1]), ("MOVE", []), ("MUTATE", [0])):
        label = LABELS[f"LABEL_CNODE_{name}"]
        for to, depth, source in product((occupied, empty), depths, (empty, NODE, frame)):
            if depth != 32 or to == occupied or source == empty:
                _call(script, NODE, label, [to, depth, source, 32, *more], [NODE])
                _call(script, NODE, label, [to, 32, source, depth, *more], [NODE])
    for places in product((empty, occupied, frame), repeat=3):
        words = [word for place in places for word in (place, 32)]
        _call(script, NODE, LABELS["LABEL_CNODE_ROTATE"], words, [NODE, NODE])


def objects_in_rows(script: Script) -> None:
    """Several of each kind; where not all slots are empty, none is made."""
    sizes = {"UNTYPED": 12, "CNODE": 2}
    kinds = ("UNTYPED", "CNODE", "TCB", "ENDPOINT", "NOTIFICATION", "FRAME_4K", "FRAME_64K",
             "PAGE_TABLE")  # fmt: skip
    for kind in kinds:
        script.make(kind, sizes.get(kind, 0), SOME)
    for place in range(SOME):
        first = script.slots(SOME)
        script.invoke(NODE, "CNODE_COPY", [first + place, 32, TCB, 32, 7], [NODE])
        words = [API["TYPE_ENDPOINT"], 0, 0, 0, first, SOME]
        _call(script, API["ROOT_UNTYPED"] + 1, LABELS["LABEL_UNTYPED_RETYPE"], words, [NODE])


def a_message_without_a_buffer(script: Script) -> None:
    """Four words need none; more words, or capabilities, cannot be sent without."""
    thread = script.thread()
    script.syscall("YIELD")
    assert script.runs(thread)
    for length, extra in ((4, 0), (5, 0), (0, 1)):
        for number in ("CALL", "SEND"):
            sent = message(length, extra, 0, API["LABEL_CNODE_DELETE"])
            script.syscall(number, NODE, sent, [script.slots(), 32])


def lines_that_do_not_exist(script: Script) -> None:
    for line in (0, 62, 64, 65, 1 << 16, 1 << 31):
        words = [line, script.slots(), 32]
        _call(script, API["ROOT_IRQ_CONTROL"], LABELS["LABEL_IRQ_GET"], words, [NODE])
