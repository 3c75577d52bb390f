"""Quoll: from an ELF file to a supergraph with values."""
