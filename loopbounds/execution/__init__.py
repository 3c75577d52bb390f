"""Concrete execution of an entry, where memory as loaded decides every branch: its loops counted.

Takes a supergraph of paths that start with memory as loaded.
Gives how often each loop is executed, or the place where something unknown decides.
Source: concrete execution with unknown words; docs/loopbounds.md#concrete-execution.
Names: concrete.concrete_execution, activations.activated, loop_replay.ExecutionReplay, machine.
"""
