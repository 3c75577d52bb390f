"""wcet/executions."""
