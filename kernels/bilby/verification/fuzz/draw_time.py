# SPDX-License-Identifier: BSD-2-Clause
"""Single random operations that only exist where time is a capability."""

from __future__ import annotations

from collections.abc import Callable

from kernels.bilby.verification.fuzz.draw import Draw, Operation
from kernels.bilby.verification.spec.layout import API, BUDGET_LEAST, SLICE, message

BUDGETS = [BUDGET_LEAST, BUDGET_LEAST, 300, 500, SLICE]  # ticks
PERIODS = [300, SLICE, SLICE, 2500, 5000, 100_000, API["PERIOD_TICKS_MAX"]]


class TimedDraw(Draw):
    def amounts(self) -> list[int]:
        """Budget and period; one in three is full, one in ten is none that may be."""
        if self.rng.random() < 0.1:
            return [self.rng.choice([0, 1, BUDGET_LEAST - 1, 600, 1 << 30]),
                    self.rng.choice([0, 500, 1 << 30, 0xFFFFFFFF])]  # fmt: skip
        budget = self.rng.choice(BUDGETS)
        if self.rng.random() < 0.35:
            return [budget, budget]
        return [budget, max(budget, self.rng.choice(PERIODS))]

    def configure_context(self) -> Operation:
        return self.invoke("configure context", self.pick("sched_control"),
                           API["LABEL_CONTEXT_CONFIGURE"], self.amounts(),
                           [self.pick("context")])  # fmt: skip

    def set_level(self) -> Operation:
        level = self.rng.choice([0, 0, 0, 1, 1, 2, 3, 4])
        return self.invoke("set level", self.pick("sched_control"),
                           API["LABEL_SYSTEM_CRITICALITY"], [level], [])  # fmt: skip

    def bind_context(self) -> Operation:
        label = API["LABEL_CONTEXT_BIND"]
        to = self.pick("tcb", "tcb", "notification")
        return self.invoke("bind context", self.pick("context"), label, [], [to])

    def unbind_context(self) -> Operation:
        """Mostly not the first thread's, without which a sequence soon ends."""
        label, address = API["LABEL_CONTEXT_UNBIND"], self.pick("context")
        if address == API["ROOT_CONTEXT"] and self.rng.random() < 0.95:
            address = self.pick("tcb")
        return self.invoke("unbind context", address, label, [], [])

    def ask_consumed(self) -> Operation:
        label = self.rng.choice(["CONSUMED", "YIELD_TO"])
        return self.invoke(label.lower(), self.pick("context"), API[f"LABEL_CONTEXT_{label}"],
                           [], [])  # fmt: skip

    def set_criticality(self) -> Operation:
        words = [self.rng.choice([0, 0, 1, 2, 3, 4])]
        label = API["LABEL_TCB_SET_CRITICALITY"]
        return self.invoke("set criticality", self.pick("tcb"), label, words, [])

    def set_limits(self) -> Operation:
        words = [self.rng.choice([100, 200, 255, 255, 256]), self.rng.choice([0, 1, 3, 3, 4])]
        label = API["LABEL_TCB_SET_LIMITS"]
        return self.invoke("set limits", self.pick("tcb"), label, words, [])

    def set_timeout(self) -> Operation:
        caps = [self.pick("endpoint", "endpoint", "notification")]
        if self.rng.random() < 0.2:
            caps = []
        label = API["LABEL_TCB_SET_TIMEOUT"]
        return self.invoke("set timeout", self.pick("tcb"), label, [], caps)

    def save_caller(self) -> Operation:
        """Of the current thread, if it serves somebody, which an address in its space leads to."""
        to, index, depth = self.place(occupied=False)
        own = [s for s in self.slots("tcb") if s.cap and s.cap["object"] == self.thread.address]
        served = own if self.thread.slots["caller"].cap is not None else []
        address = self.prefix() | served[0].index if served else self.pick("tcb")
        label = API["LABEL_TCB_SAVE_CALLER"]
        return self.invoke("save caller", address, label, [index, depth], [to])

    def swap_caller(self) -> Operation:
        address, index, depth = self.place(occupied=False)
        answers = [s for s in self.slots("reply") if s.cap and not s.cap["master"]]
        if answers and self.rng.random() < 0.6:
            slot = self.rng.choice(answers)
            address, index, depth = API["ROOT_CNODE"], self.prefix() | slot.index, 32
        elif self.rng.random() < 0.1:
            address, index, depth = self.place(occupied=True)
        label = API["LABEL_CNODE_SWAP_CALLER"]
        return self.invoke("swap caller", address, label, [index, depth], [])

    def ask_time(self) -> Operation:
        return Operation("syscall", API["SYS_CLOCK"], name="clock")

    def send_and_receive(self) -> Operation:
        """A signal or a message to whoever waits, then a receive."""
        name = self.rng.choice(["SYS_SIGNAL_RECEIVE", "SYS_NB_SEND_RECEIVE"])
        kinds = ("notification", "endpoint") if self.rng.random() < 0.2 else (
            ("notification",) if name == "SYS_SIGNAL_RECEIVE" else ("endpoint",)
        )  # fmt: skip
        length, extra = self.rng.choice([0, 1, 4, 5, 20]), self.rng.choice([0, 0, 0, 1])
        words = [self.rng.getrandbits(32) for _ in range(4)]
        to = self.pick("endpoint", "endpoint", "notification")
        registers = [to, message(length, extra, 0, self.rng.choice([0, 9])), *words]
        return Operation("syscall", API[name], registers, {}, name, self.pick(*kinds))

    def timed_choices(self) -> dict[Callable[[], Operation], int]:
        return {
            self.configure_context: 5, self.set_level: 2, self.bind_context: 3,
            self.unbind_context: 1, self.ask_consumed: 3, self.set_criticality: 2,
            self.set_limits: 1, self.set_timeout: 3, self.save_caller: 3, self.swap_caller: 3,
            self.ask_time: 1, self.send_and_receive: 10,
        }  # fmt: skip
