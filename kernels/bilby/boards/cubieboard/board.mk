# SPDX-License-Identifier: BSD-2-Clause
CPU := -mcpu=cortex-a8 -mfloat-abi=soft
MACHINE := cortex-a8
