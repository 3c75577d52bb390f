"""wcet/commands."""
