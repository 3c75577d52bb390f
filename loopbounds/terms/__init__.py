"""loopbounds/terms."""
