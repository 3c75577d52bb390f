"""Recorded executions: the files of the recorder, followed through a graph and compared with facts.

Takes a file that the recorder in QEMU wrote; a supergraph; the facts about memory.
Gives ``Trace`` with its executions; the path of one; accesses that refute a fact or S8.
Source: the file format in kernels/recorder/recorder.c; rules 2 and 28 of docs/soundness.md.
Names: trace.Trace, follow.follow, observations.observations.
"""
