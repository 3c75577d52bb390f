# SPDX-License-Identifier: BSD-2-Clause
"""The specification of the kernel interface, executable: what every call does to which state."""
