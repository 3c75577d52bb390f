# SPDX-License-Identifier: BSD-2-Clause
"""The first checks of every system call: its length, its label, the invoked capability."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.draw import Operation
from kernels.bilby.verification.fuzz.script import NODE, TCB, Script
from kernels.bilby.verification.spec.layout import API, message

LABELS = sorted(value for name, value in API.items() if name.startswith("LABEL_"))
LONGEST = 7  # words that any of the calls below needs; write registers needs more
UNKNOWN = 99
WAITING = ("endpoint", "notification")
LENGTHS = {
    "cnode": ("CNODE_COPY", "CNODE_MINT", "CNODE_MOVE", "CNODE_MUTATE", "CNODE_ROTATE",
              "CNODE_DELETE", "CNODE_REVOKE", "CNODE_RECYCLE"),
    "tcb": ("TCB_CONFIGURE", "TCB_SET_PRIORITY"),
    "untyped": ("UNTYPED_RETYPE",),
    "page_table": ("PAGE_TABLE_MAP",),
    "frame": ("FRAME_MAP", "FRAME_CLEAN", "FRAME_PUBLISH"),
    "irq_control": ("IRQ_GET",),
    "irq_handler": ("IRQ_SET_NOTIFICATION",),
    "asid_control": ("ASID_MAKE_POOL",),
    "asid_pool": ("ASID_ASSIGN",),
}  # fmt: skip


def _one_of_each(script: Script) -> list[int]:
    """A capability of each kind; nothing is mapped, and the thread is not configured."""
    handler = script.slots()
    script.invoke(API["ROOT_IRQ_CONTROL"], "IRQ_GET", [11, handler, 32], [NODE])
    kinds = ("TCB", "ENDPOINT", "NOTIFICATION", "PAGE_TABLE", "PAGE_DIRECTORY", "FRAME_4K")
    made = [script.make(kind) for kind in kinds]
    made += [script.make("UNTYPED", 12), script.make("CNODE", 4), handler]
    pools = [API["ROOT_ASID_CONTROL"], API["ROOT_ASID_POOL"]] if script.run.kernel.pools else []
    return [*made, API["ROOT_IRQ_CONTROL"], *pools]


def _call(script: Script, address: int, label: int, length: int, caps: list[int]) -> None:
    buffer = {API["BUFFER_CAPS"] + i: cap for i, cap in enumerate(caps)}
    script.syscall("CALL", address, message(length, len(caps), 0, label), [0] * 4, buffer)


def each_kind_refuses_what_it_does_not_know(script: Script) -> None:
    """Every label through every kind of capability, with nothing else."""
    slots = [s for s in _one_of_each(script) if script.cap_of(s).kind not in WAITING]
    for address in slots:
        for label in (*LABELS, UNKNOWN):
            if label not in (API["LABEL_TCB_RESUME"], API["LABEL_CNODE_RECYCLE"]):
                _call(script, address, label, 0, [])


def calls_of_every_length(script: Script) -> None:
    """All words are zero; with no capability, then with one to three."""
    slots = [s for s in _one_of_each(script) if script.cap_of(s).kind in LENGTHS]
    for address in slots:
        for name in LENGTHS[script.cap_of(address).kind]:
            for count in range(4):
                for length in range(LONGEST):
                    _call(script, address, API[f"LABEL_{name}"], length, [NODE] * count)


def every_register_is_written(script: Script) -> None:
    thread, words = script.make("TCB"), [0x1000 + i for i in range(17)]
    script.configure(thread)
    for length in range(15, 18):
        error = "NONE" if length == 17 else "TRUNCATED"
        script.invoke(thread, "TCB_WRITE_REGISTERS", words, error=error, length=length)
    script.start(thread, 255)


def receiving_needs_something_to_wait_for(script: Script) -> None:
    empty = script.slots()
    for name in ("RECEIVE", "REPLY_RECEIVE", "SEND", "NB_SEND"):
        for address in (1 << 31, empty, TCB):
            script.syscall(name, address)
    for number in (0, 8, UNKNOWN):
        script.run.step(Operation("syscall", number, [NODE, 0, 0, 0, 0, 0], name="unknown"), True)


def four_words_travel_there_and_back(script: Script) -> None:
    """By the fastpath, with a badge there and none back, while others wait."""
    endpoint = script.make("ENDPOINT")
    badged = script.mint(endpoint, 77)
    server = script.thread()
    script.syscall("YIELD")
    script.syscall("RECEIVE", endpoint)
    for i in range(3):
        words = [0x100 * i + word for word in range(1, 5)]
        script.syscall("CALL", badged, message(4, 0, 0, i), words)
        assert script.runs(server)
        script.syscall("REPLY_RECEIVE", endpoint, message(4, 0, 0, i), words[::-1])
        assert script.runs(TCB)


def a_thread_is_recycled(script: Script) -> None:
    thread = script.thread(priority=100)
    script.recycle(thread)
    script.recycle(script.copy(thread))
