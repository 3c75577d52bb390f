"""The analysis of a kernel, one stage a line: the index of the project.

Takes the path of an ELF and ``Options``.
Gives ``Result``: bounds, worst paths, interrupt latency, and the assumptions all of it rests on.
Source: docs/architecture.md; docs/soundness.md.
Names: analyse.analyse, preparation.prepare, result.Result, request_key.request_key.
"""
