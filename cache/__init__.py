"""Abstract caches: which references hit, per level."""
