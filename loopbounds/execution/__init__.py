"""Concrete execution of an entry whose branches all depend on memory as loaded: it counts loops.

Takes a supergraph of paths that start with memory as loaded.
Gives how often each loop is executed, or the place where an unknown word decides a branch.
Source: concrete execution with unknown words; docs/loopbounds.md#concrete-execution.
Names: concrete.concrete_execution, activations.activated, loop_replay.ExecutionReplay, machine.
"""
