/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller of the L2 cache (an L210: ARM DDI 0284), in the device window.  An operation on one
 * line is done when the write is; an operation on ways when none of their bits is read back.
 */
#ifndef BILBY_OUTER_H
#define BILBY_OUTER_H

#include <board.h>

#define OUTER_CONTROL               0x100 /* 1: on */
#define OUTER_AUXILIARY             0x104 /* written while it is off */
#define OUTER_SYNC                  0x730
#define OUTER_FORGET_WAYS           0x77c
#define OUTER_CLEAN_AND_FORGET_LINE 0x7f0 /* physical address */
#define OUTER_CLEAN_AND_FORGET_WAYS 0x7fc
#define OUTER_LOCK_DATA             0x900 /* a way whose bit is set is not filled by data, */
#define OUTER_LOCK_INSTRUCTIONS     0x904 /* ... or by instructions */

#define OUTER_GEOMETRY  0x00030024 /* 8 ways of 16 KiB, and latencies: Linux's value for this chip */
#define OUTER_WAYS      0xff
#define OUTER_WAY_BYTES 0x4000

#define OUTER_REGISTER(offset) (*(volatile word_t *)(OUTER_WINDOW + (offset)))

#endif
