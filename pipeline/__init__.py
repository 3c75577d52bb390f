"""Core models: cycles for every node and edge of a supergraph, by cause.

Takes a supergraph, its cache classification, and the figures of a core and a board.
Gives ``Costs``: a path costs the sum over its nodes and edges.
Source: ARM1136JF-S TRM (DDI 0211) and Cortex-A8 TRM (DDI 0344), chapters 16; docs/pipeline.md.
Names: charge.charge, costs.Costs, core.load_core, block_times.block_times, pipeline_simulator.
"""
