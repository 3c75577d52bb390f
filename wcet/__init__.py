"""The command line: it parses, calls, prints, and maps errors to exit statuses.

Takes the arguments of ``wcet COMMAND``.
Gives reports on standard output and in files, all of them or none, and an exit status.
Source: ``wcet --help``; docs/architecture.md, "Input and output".
Names: cli.main, request.requested, atomic.publish, process.prepare, numbers.
"""
