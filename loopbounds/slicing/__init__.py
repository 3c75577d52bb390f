"""loopbounds/slicing."""
