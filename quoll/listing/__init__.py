"""Programs as text for people, and as data for other tools.

Takes a ``Program`` and its image.
Gives text (summary, disassembly, call graph, loops), JSON, networkx graphs, DOT and GraphML.
Source: the Graphviz DOT language.
Names: program_text.summary, program_text.disassembly, export.program_json, export.to_graphml.
"""
