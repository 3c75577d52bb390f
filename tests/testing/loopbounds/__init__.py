"""Loops whose bounds are known, and searches that find them."""
