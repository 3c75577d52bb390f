"""From an ELF file to a supergraph with values: control flow, contexts, abstract words.

Takes an ELF file, the user's facts, entries by address, and a memory map.
Gives ``Program`` (functions as graphs), then ``Supergraph`` (calls in contexts), then ``Values``.
Source: the folders name theirs; what holds for all of them is in docs/soundness.md.
Names: errors.WcetError, assumptions.AssumptionKind, printable.printable.
"""
