"""wcet/platforms."""
