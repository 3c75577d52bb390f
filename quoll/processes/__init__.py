"""Child processes: programs and Python functions with limits on time, memory and output.

Takes a command or a function, with its limits.
Gives its output or result; an error if it hangs or dies. No child outlives its parent.
Source: Linux manual pages prctl(2), setrlimit(2), memfd_create(2).
Names: children.run, futures.submit, parallel_map.parallel_map, time_limit, worker.worker
"""
