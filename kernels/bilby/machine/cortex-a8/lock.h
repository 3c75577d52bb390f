/* SPDX-License-Identifier: BSD-2-Clause */
#error "PIN: the L1 caches of the Cortex-A8 cannot be locked; build for BOARD=kzm, or without PIN"
