"""The words of a report that need an explanation: a line for each word on the screen.

``WORDS`` is the only table; the glossary shows it, and a test compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import wrap

__all__ = ["LEGEND", "WORDS", "ScreenWord", "legend"]

LEGEND = "words   "  # start of a legend


@dataclass(frozen=True, slots=True)
class ScreenWord:
    """A word that ``commands`` print, and its meaning."""

    word: str
    commands: tuple[str, ...]
    meaning: str

    def is_in(self, text: str) -> bool:
        """Whether it occurs in ``text`` as a whole word."""
        return re.search(rf"(?<![\w-]){re.escape(self.word)}(?![\w-])", text) is not None


CYCLES = ("analyse", "path", "timing", "advise")
CACHES = ("cache", "timing")
LOOPS = ("analyse", "loops")
WORDS = (
    ScreenWord("AH", ("cache",), "always hit"),
    ScreenWord("AM", ("cache",), "always miss"),
    ScreenWord("FM", ("cache",), "first miss: at most one each time a loop or function is entered"),
    ScreenWord(
        "CM",
        ("cache",),
        "counted misses: at most so many on a path, charged where the outermost loop is entered",
    ),
    ScreenWord("PL", ("cache",), "once per line: a miss where a load enters another line"),
    ScreenWord("NC", ("cache",), "not classified: hit or miss, charged as the worse"),
    ScreenWord("paid", ("cache",), "its miss was charged before"),
    ScreenWord("always hit", ("timing",), "in the cache on every path"),
    ScreenWord("always miss", ("timing",), "on no path in the cache"),
    ScreenWord(
        "first miss", ("timing",), "at most one miss each time a loop or function is entered"
    ),
    ScreenWord(
        "counted misses",
        ("timing",),
        "at most so many on a path, charged where the outermost loop is entered",
    ),
    ScreenWord("once per line", ("timing",), "a miss where a load enters another line"),
    ScreenWord("not classified", ("timing",), "hit or miss, charged as the worse"),
    ScreenWord("credited", ("timing",), "its miss was charged before"),
    ScreenWord("L2", ("cache",), "after a class: it then hits in the level-2 cache"),
    ScreenWord("competition", ("cache",), "lines of known address that share a set"),
    ScreenWord("exact line", ("cache",), "the address is known up to its cache line"),
    ScreenWord("within 4 KiB", ("cache",), "the address is known up to 4 KiB"),
    ScreenWord(
        "symbolic hit", ("cache",), "the address is not known, but its line was used before"
    ),
    ScreenWord("issue", CYCLES, "cycles in which instructions begin"),
    ScreenWord("stalls", CYCLES, "waiting for a result or a unit"),
    ScreenWord("branches", CYCLES, "cycles of transfers of control beyond their own"),
    ScreenWord("I-misses", CYCLES, "misses of the instruction cache"),
    ScreenWord("D-misses", CYCLES, "misses of loads"),
    ScreenWord("stores", CYCLES, "waiting for stores, and lines written back"),
    ScreenWord("entry, exit", CYCLES, "taking the exception, and operations pending at the end"),
    ScreenWord("TLB", CYCLES, "translations that are not resident"),
    ScreenWord("other", ("analyse",), "columns hidden at this width"),
    ScreenWord("own", ("analyse", "path"), "without its calls and loops"),
    ScreenWord("runs", ("cache", "path"), "executions on the worst path"),
    ScreenWord("folded", ("path",), "calls and loops below --min per cent"),
    ScreenWord(
        "contexts", ("analyse", "cache", "loops"), "chains of calls, each analysed by itself"
    ),
    ScreenWord("nusmv", LOOPS, "proved by the model checker"),
    ScreenWord("execution", LOOPS, "counted in executions of the entry"),
    ScreenWord("smt", LOOPS, "proved by the SMT solver"),
    ScreenWord("fact", LOOPS, "stated by you, and assumed"),
    ScreenWord("parameter", LOOPS, "a name in place of a number, by a fact"),
    ScreenWord("pending", LOOPS, "not repeated while an interrupt is pending"),
    ScreenWord("exact", LOOPS, "an execution reaches the bound"),
    ScreenWord("any", ("values",), "nothing is known: any 32-bit word"),
    ScreenWord("step", ("values",), "every so many from the least to the largest"),
    ScreenWord("never to", ("values",), "an edge that no execution takes, left out"),
)


def legend(command: str, text: str, columns: int) -> list[str]:
    """The legend for the words of ``command`` in ``text``, in lines of at most ``columns``."""
    found = [w for w in WORDS if command in w.commands and w.is_in(text)]
    if not found:
        return []
    whole = "; ".join(f"{w.word}: {w.meaning}" for w in found)
    return wrap(LEGEND + whole, max(columns, 20), subsequent_indent=" " * len(LEGEND))
