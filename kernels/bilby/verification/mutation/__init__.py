# SPDX-License-Identifier: BSD-2-Clause
"""One fault in each statement of the kernel, made by rule: sources → faults → finders of each.

The rules are the usual operators of mutation analysis (Agrawal et al., "Design of mutant operators
for the C programming language", 1989). A fault that leaves the object code as it was is none.
"""
