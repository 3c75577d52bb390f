"""loopbounds/proof."""
