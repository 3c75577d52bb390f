"""Concrete execution of an entry with unknown words: it counts loops.

Takes a supergraph.
Gives how often each loop is executed, or the place where an unknown word decides a branch.
Source: concrete execution with unknown words; docs/loopbounds.md#concrete-execution.
Names: concrete.concrete_execution, together.executed_together, activations.activated, machine.
"""
