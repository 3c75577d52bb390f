"""Facts files: knowledge of the user that the binary does not contain.

Takes lines of text, one fact a line.
Gives ``Facts``: a class for each kind and its stage; ``LocatedFacts``: their places in an image.
Source: Blackham, Shi, Heiser, EuroSys 2012, section 5.2, for constraints; docs/facts.md.
Names: read.load, read.parse, fact.FactForm, located.locate, regions.MemoryRegions.
"""
