"""All scopes of a graph, made when first asked for, and what they find out of each other."""

from __future__ import annotations

from loopbounds.slicing.cell import SP, HeaderCell
from loopbounds.slicing.code import Code
from loopbounds.slicing.effects import FLAG
from loopbounds.slicing.gated_ssa import Places, Scope
from loopbounds.slicing.stack_taint import Taint
from loopbounds.terms.bit_vectors import Term, add, sub

__all__ = ["Scopes"]


class Scopes:
    """The scope of the whole graph and those of its loops."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self._keepers: dict[tuple[int, Scope], Scope] = {}
        self.restart(frozenset())

    def restart(self, tainted: frozenset[HeaderCell]) -> None:
        """Forget all; ``tainted`` cells may hold stack addresses.

        So may the same registers in the same loop of other contexts: it is not found out for
        each by itself.
        """
        alike: set[HeaderCell] = {
            (twin, cell)
            for loop, cell in tainted
            for twin in (self._twins(loop) if isinstance(cell, int) else [])
        }
        self.taint = Taint(self, tainted | alike)
        self._plain: dict[tuple[int, Places], Scope] = {}
        self._keepers.clear()
        self.renew()

    def _twins(self, loop: int) -> list[int]:
        """A loop in all of its contexts."""
        graph = self.code.graph
        headers = [graph.nodes[other.header].block.addr for other in graph.loops]
        return [i for i, header in enumerate(headers) if header == headers[loop]]

    def renew(self) -> None:
        """Forget what rests on bounds, of which there may be more now: plain scopes read none."""
        self.whole = Scope(self.code, None, self)
        self._loop_scopes: dict[int, Scope] = {}
        self._keepers = {key: k for key, k in self._keepers.items() if key[1].is_plain}
        self.taint.renew()

    def plain(self, loop: int, places: Places) -> Scope:
        """One iteration, of whose start nothing is known but ``places``."""
        key = loop, places
        if key not in self._plain:
            self._plain[key] = Scope(self.code, loop, self, places=places)
        return self._plain[key]

    def of_loop(self, loop: int) -> Scope:
        """One iteration; what it keeps is a constant or a stack address where it is one outside."""
        if loop not in self._loop_scopes:
            self._loop_scopes[loop] = Scope(self.code, loop, self, known_start=True)
        return self._loop_scopes[loop]

    def kept(self, loop: int, register: int, outside: Scope) -> bool:
        """Whether a loop keeps a register, by what can be seen inside the loop and at its start."""
        if register not in self.code.written(loop):
            return True
        keeper = self._keeper(loop, outside)
        kept = keeper.keeps(register)
        outside.memory.used |= keeper.memory.used
        return kept

    def _keeper(self, loop: int, outside: Scope) -> Scope:
        """An iteration that starts with registers at the places that they have outside.

        By induction over the iterations: the first starts so, and each one keeps these registers.
        What is not kept is left out, and the rest is looked at again.
        """
        key = loop, outside
        known = self._keepers.get(key)
        if known is None:
            places = outside.places(loop)
            known = self.plain(loop, places)
            while changed := [r for r, _ in places if not known.keeps(r)]:
                places = tuple((r, p) for r, p in places if r not in changed)
                if SP in changed:
                    places = tuple((r, p) for r, p in places if not p.from_sp)
                known = self.plain(loop, places)
            self._keepers[key] = known
        return known

    def start_value(self, scope: Scope, register: int) -> Term | None:
        """What a kept register is at a loop's header, if a constant or at a distance from sp."""
        loop = scope.loop
        if loop is None or register >= FLAG or not self.kept(loop, register, self.whole):
            return None
        header, entries = scope.start, self.code.graph.loops[loop].entries
        value = self.whole.at_entries(header, entries, register)
        if value.constant is not None:
            return value
        if register == SP or not self.kept(loop, SP, self.whole):
            return None
        distance = sub(value, self.whole.at_entries(header, entries, SP))
        return None if distance.constant is None else add(scope.at(header, SP), distance)
