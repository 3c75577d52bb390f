"""Sweeps: many analyses as one table of results, on many processes or machines.

Takes a matrix of kernels, platforms and options.
Gives a row of the table for each entry of each analysis.
Source: docs/sweep.md; Dask schedules the analyses.
Names: matrix.read_matrix, cluster.run_tasks, analysis_run.run_analysis, table.Row.
"""
