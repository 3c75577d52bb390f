"""Recorded executions against bounds and facts.

Takes an analysed entry and executions recorded in QEMU.
Gives replays on the concrete machine, in cycles; what the recordings say of each fact.
Source: rules 17, 21 and 28 of docs/soundness.md; docs/validation.md.
Names: replay.replay_paths, replay.moments, fact_check.check_facts, pieces.cut.
"""
