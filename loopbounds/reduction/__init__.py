"""loopbounds/reduction."""
