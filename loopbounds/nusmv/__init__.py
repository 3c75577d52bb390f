"""loopbounds/nusmv."""
