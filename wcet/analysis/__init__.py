"""wcet/analysis."""
