"""The commands of ``wcet``, one module for each family.

Takes the parsed options of one command.
Gives its output and its exit status; ``wcet.cli.COMMANDS`` maps names to modules.
Source: ``wcet COMMAND --help``.
Names: analyse, cache, check, check_facts, init, listing, loops, path, replay, timing, values.
"""
