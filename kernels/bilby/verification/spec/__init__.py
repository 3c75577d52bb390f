# SPDX-License-Identifier: BSD-2-Clause
"""The executable specification of the kernel interface: the effect of every call on its state."""
