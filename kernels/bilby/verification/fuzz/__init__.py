# SPDX-License-Identifier: BSD-2-Clause
"""Fuzzing of the kernel on the host: random and directed calls against the specification."""
