"""Flow facts of other analysers: equivalent ones become facts, all others are refused by name.

Takes the text of a file of OTAWA (.ff, .ffx) or of aiT (.ais).
Gives lines of facts with their places in that file, and the ignored lines.
Source: OTAWA, src/prog/ipet_FlowFactConstraintBuilder.cpp; docs/interchange.md.
Names: stated.ImportedFacts, otawa_text.read_ff, otawa_xml.read_ffx, ait.read_ais.
"""
