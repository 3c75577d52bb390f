"""Programs for people and for other tools.

Takes a ``Program`` and its image.
Gives text (summary, disassembly, call graph, loops), JSON and Graphviz dot.
Source: the Graphviz DOT language.
Names: listing.summary, listing.disassembly, export.program_json, export.cfg_dot.
"""
