"""The ``[tlb]`` table of a platform file."""

from __future__ import annotations

from pipeline.tlb_model import TlbModel
from wcet.platforms.toml_table import Table

__all__ = ["LAST_PAGE", "RESIDENT", "read_tlb"]

RESIDENT = "assumed-resident"
LAST_PAGE = "last-page"


def read_tlb(table: Table) -> tuple[str, TlbModel | None]:
    """The model by name, and the figures of ``last-page``; None where there are none.

    Raises InputError if the model needs figures that are not there, or they are incomplete.
    """
    name = table.text("model", (RESIDENT, LAST_PAGE))
    model = None
    if name == LAST_PAGE or table.present("reads"):
        ranges = []
        for entry in table.tables("large") if table.present("large") else []:
            low, high = entry.address_range("virtual")
            ranges.append((low, high, entry.number("bytes", 1)))
            entry.close()
        locked = []
        for entry in table.tables("locked") if table.present("locked") else []:
            locked.append(entry.address_range("virtual"))
            entry.close()
        refill, reads = table.figure("refill"), table.figure("reads", 1)
        page = table.figure("page", 1)
        model = TlbModel(refill, reads, page, tuple(ranges), tuple(locked))
    table.close()
    return name, model
