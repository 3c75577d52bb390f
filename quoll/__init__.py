"""From an ELF file to a supergraph with values: control flow, contexts, abstract words.

Takes an ELF file, the user's facts, entries by address, and a memory map.
Gives ``Program`` (graphs of functions), ``Supergraph`` (calls in contexts), then ``ValueResults``.
Source: named by each folder; docs/soundness.md has the common rules.
Names: errors.WcetError, assumptions.AssumptionKind, printable.printable.
"""
