"""wcet/reports."""
