"""Resolves indirect transfers: their kind and their targets, one method per file.

Takes the values inside a function, or the code just before a write of the pc.
Gives return, call or jump with its targets; or nothing, and then the transfer is refused.
Source: Procedure Call Standard for the Arm Architecture (AAPCS32), 6.1 and 6.2; docs/extraction.md.
Names: by_values.resolve, tables.selected, stack_frames.prove_frame, local_resolver.LocalResolver.
"""
