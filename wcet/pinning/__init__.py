"""Pinning: the lines that locked ways of the first-level caches should hold for the least bounds.

Takes the entries of a kernel, and the caches of a platform.
Gives lines, the bounds with and without them, and the keys of the platform file.
Source: Blackham, Shi, Heiser (EuroSys 2012), section 4; docs/pinning.md.
Names: bounds.PinnedBounds, choice.choose, first_touched.first_touched, lists.with_pins.
"""
