"""Platforms: core, caches, latencies, clock, entries and exits of a board, as TOML files.

Takes the name of a board, the path of a file, or the build attributes of an ELF.
Gives ``Platform``, every figure with its source; refuses a binary built for another core.
Source: the manuals that each file names; Arm ABI addenda, section 3.3, for build attributes.
Names: platform_model.load, platform_model.for_image, platform_model.Platform, platform_keys.KEYS.
"""
