# SPDX-License-Identifier: BSD-2-Clause
CPU := -mcpu=arm1136jf-s -mfloat-abi=soft
MACHINE := arm1136
