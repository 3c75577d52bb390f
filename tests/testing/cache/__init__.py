"""Random graphs with memory accesses, and concrete caches to walk through them."""
