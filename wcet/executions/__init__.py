"""Recorded executions against bounds and facts.

Takes an analysed entry and executions recorded in QEMU.
Gives replays on the concrete machine, in cycles, and verdicts of the recordings on each fact.
Source: rules 17, 21 and 28 of docs/soundness.md; docs/validation.md.
Names: path_replay.replay_paths, path_replay.moments, fact_check.check_facts, recorded_paths.cut.
"""
