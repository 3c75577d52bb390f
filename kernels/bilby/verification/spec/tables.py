# SPDX-License-Identifier: BSD-2-Clause
"""Links between mapped objects and their tables: shadow tables, or numbers.

``Shadow`` (``vspace_shadow.c``): a frame knows its descriptor, a directory its tables, and a
deleted object removes its mappings. ``Numbered`` (``vspace_asid.c``): a mapped object stores the
number of its space and its address; both may be stale, and are compared with the tables.
"""

from __future__ import annotations

from typing import Protocol

from kernels.bilby.verification.spec.layout import RAM, SIZES, WINDOW
from kernels.bilby.verification.spec.state import Cap, Kernel, Pool, Slot, Table

LARGE = 16
POOL_ENTRIES = 1024


def descriptor_count(frame: Cap) -> int:
    return LARGE if frame["size"] in (1, 3) else 1


def in_table(frame: Cap) -> bool:
    return frame["size"] <= 1


def pointer_to(table: Table) -> int:
    """The directory entry that leads to a page table."""
    return table.address - WINDOW + RAM | 1


def table_at(kernel: Kernel, descriptor: int) -> Table:
    return kernel.table((descriptor & ~0x3FF) - RAM + WINDOW)


class Spaces(Protocol):
    def directory(self, kernel: Kernel, cap: Cap) -> Table | None:
        """That a capability leads to, if it can be used."""

    def has_copy(self, cap: Cap) -> bool: ...

    def is_mapped(self, frame: Cap) -> bool: ...

    def is_entered(self, kernel: Kernel, cap: Cap) -> bool:
        """The page table was mapped, and not unmapped since."""

    def note_frame(self, cap: Cap, table: Table, index: int, address: int, space: Cap) -> None:
        """The frame was mapped."""

    def note_table(self, cap: Cap, address: int, space: Cap) -> None: ...

    def unmap_frame(self, kernel: Kernel, slot: Slot) -> None: ...

    def unmap_table(self, kernel: Kernel, slot: Slot) -> None: ...

    def delete_table(self, kernel: Kernel, slot: Slot) -> None: ...

    def delete_directory(self, kernel: Kernel, slot: Slot) -> None: ...

    def moved(self, kernel: Kernel, slot: Slot) -> None:
        """A capability is in another slot now."""


class Shadow:
    def directory(self, kernel: Kernel, cap: Cap) -> Table | None:
        return kernel.table(cap["object"])

    def has_copy(self, cap: Cap) -> bool:
        return True

    def is_mapped(self, frame: Cap) -> bool:
        return bool(frame["entry"])

    def is_entered(self, kernel: Kernel, cap: Cap) -> bool:
        return self._holder(kernel, kernel.table(cap["object"])) is not None

    def note_frame(self, cap: Cap, table: Table, index: int, address: int, space: Cap) -> None:
        cap.fields["entry"] = table.address + 4 * index

    def note_table(self, cap: Cap, address: int, space: Cap) -> None:
        pass

    def _holder(self, kernel: Kernel, table: Table) -> tuple[Table, int] | None:
        """The directory that a table is in, and where."""
        for other in kernel.objects.values():
            if isinstance(other, Table) and other.is_directory:
                for index, value in other.descriptors.items():
                    if value == pointer_to(table):
                        return other, index
        return None

    def unmap_frame(self, kernel: Kernel, slot: Slot) -> None:
        cap = slot.cap
        assert cap is not None
        if not cap["entry"]:
            return
        size = SIZES["page_table" if in_table(cap) else "page_directory"]
        table = kernel.table(cap["entry"] & ~(size - 1))
        index = (cap["entry"] - table.address) // 4
        for i in range(index, index + descriptor_count(cap)):
            del table.descriptors[i]
        cap.fields["entry"] = 0
        kernel.touch(slot, table)

    def unmap_table(self, kernel: Kernel, slot: Slot) -> None:
        """Out of the directory it is in; its own entries stay."""
        assert slot.cap is not None
        table = kernel.table(slot.cap["object"])
        found = self._holder(kernel, table)
        if found is not None:
            directory, index = found
            del directory.descriptors[index]
            kernel.touch(directory, table)

    def _unmap_all(self, kernel: Kernel, table: Table) -> None:
        size = SIZES["page_directory" if table.is_directory else "page_table"]
        for slot in [*kernel.slots.values(), kernel.limbo]:
            cap = slot.cap
            if cap is None or cap.kind != "frame":
                continue
            if table.address <= cap["entry"] < table.address + size:
                self.unmap_frame(kernel, slot)

    def delete_table(self, kernel: Kernel, slot: Slot) -> None:
        assert slot.cap is not None
        self.unmap_table(kernel, slot)
        self._unmap_all(kernel, kernel.table(slot.cap["object"]))

    def delete_directory(self, kernel: Kernel, slot: Slot) -> None:
        assert slot.cap is not None
        directory = kernel.table(slot.cap["object"])
        for index, value in list(directory.descriptors.items()):
            if value & 3 == 1:
                kernel.touch(table_at(kernel, value))
                del directory.descriptors[index]
        self._unmap_all(kernel, directory)

    def moved(self, kernel: Kernel, slot: Slot) -> None:
        cap = slot.cap
        assert cap is not None
        if cap.kind == "frame" and cap["entry"]:
            size = SIZES["page_table" if in_table(cap) else "page_directory"]
            kernel.touched.add(cap["entry"] & ~(size - 1))
        elif cap.kind == "page_table":
            found = self._holder(kernel, kernel.table(cap["object"]))
            if found is not None:
                kernel.touch(found[0])


def maps(descriptor: int, frame: Cap) -> bool:
    """Whether the descriptor maps this frame, with any rights."""
    base = frame["base"] << 12
    same = descriptor & ~((1 << 12 + 4 * frame["size"]) - 1) == base
    if frame["size"] == 0:
        return bool(descriptor & 2) and same
    if frame["size"] == 1:
        return descriptor & 3 == 1 and same
    return descriptor & 0x40003 == (0x40002 if frame["size"] == 3 else 2) and same


class Numbered:
    def directory(self, kernel: Kernel, cap: Cap) -> Table | None:
        found = self._space(kernel, cap["asid"])
        return found if found is not None and found.address == cap["object"] else None

    def _space(self, kernel: Kernel, number: int) -> Table | None:
        pool = kernel.pools.get(number // POOL_ENTRIES)
        address = None if pool is None else pool.spaces.get(number % POOL_ENTRIES)
        return None if address is None else kernel.table(address)

    def has_copy(self, cap: Cap) -> bool:
        return cap.kind != "asid_control" and (cap.kind != "page_directory" or cap["asid"] != 0)

    def _number(self, frame: Cap) -> int:
        return frame["asid_high"] << 12 | frame["asid_low"]

    def is_mapped(self, frame: Cap) -> bool:
        return self._number(frame) != 0

    def is_entered(self, kernel: Kernel, cap: Cap) -> bool:
        return cap["asid"] != 0

    def note_frame(self, cap: Cap, table: Table, index: int, address: int, space: Cap) -> None:
        number = space["asid"]
        cap.fields |= {"address": address >> 12, "asid_high": number >> 12,
                       "asid_low": number & 0xFFF}  # fmt: skip

    def note_table(self, cap: Cap, address: int, space: Cap) -> None:
        cap.fields |= {"address": address >> 20, "asid": space["asid"]}

    def unmap_frame(self, kernel: Kernel, slot: Slot) -> None:
        cap = slot.cap
        assert cap is not None
        if not self.is_mapped(cap):
            return
        self._take_out(kernel, self._space(kernel, self._number(cap)), cap)
        cap.fields |= {"address": 0, "asid_high": 0, "asid_low": 0}
        kernel.touch(slot)

    def _take_out(self, kernel: Kernel, table: Table | None, cap: Cap) -> None:
        """Remove the mapping that a frame's capability records, if the tables agree."""
        if table is None:
            return
        index = cap["address"] >> 8
        if in_table(cap):
            first = table.descriptors.get(index, 0)
            if first & 3 != 1:
                return
            table, index = table_at(kernel, first), cap["address"] & 0xFF
        if maps(table.descriptors.get(index, 0), cap):
            for i in range(index, index + descriptor_count(cap)):
                table.descriptors.pop(i, None)
            kernel.touch(table)

    def _leave_directory(self, kernel: Kernel, cap: Cap) -> None:
        directory = self._space(kernel, cap["asid"])
        pointer = pointer_to(kernel.table(cap["object"]))
        if directory is not None and directory.descriptors.get(cap["address"]) == pointer:
            del directory.descriptors[cap["address"]]
            kernel.touch(directory)

    def unmap_table(self, kernel: Kernel, slot: Slot) -> None:
        """Its frames cannot find it any more, so its entries go, too."""
        cap = slot.cap
        assert cap is not None
        if not cap["asid"]:
            return
        self._leave_directory(kernel, cap)
        cap.fields |= {"address": 0, "asid": 0}
        table = kernel.table(cap["object"])
        table.descriptors.clear()
        kernel.touch(slot, table)

    def delete_table(self, kernel: Kernel, slot: Slot) -> None:
        assert slot.cap is not None
        self._leave_directory(kernel, slot.cap)

    def delete_directory(self, kernel: Kernel, slot: Slot) -> None:
        """Release the directory's number; the records of its mapped objects become stale."""
        cap = slot.cap
        assert cap is not None
        if self.directory(kernel, cap) is not None:
            pool = kernel.pools[cap["asid"] // POOL_ENTRIES]
            del pool.spaces[cap["asid"] % POOL_ENTRIES]
            kernel.touch(pool)

    def moved(self, kernel: Kernel, slot: Slot) -> None:
        pass


__all__ = ["LARGE", "Numbered", "Pool", "Shadow", "Spaces", "descriptor_count", "table_at"]
