"""Control-flow graphs of functions, and the call graph.

Takes an image and an entry, the effects of indirect transfers, and the callees that return.
Gives ``Cfg`` (blocks and typed edges), ``Program`` (all functions), ``CallGraph``.
Source: Aho, Sethi, Ullman, section 9.4 (basic blocks); docs/extraction.md.
Names: cfg.Program, growing_function.GrowingFunction, discover.FunctionBuilder.
"""
