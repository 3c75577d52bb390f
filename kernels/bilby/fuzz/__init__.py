# SPDX-License-Identifier: BSD-2-Clause
"""Fuzzing of the kernel: random and directed calls, compared with the specification."""
