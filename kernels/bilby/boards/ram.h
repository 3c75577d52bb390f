/* SPDX-License-Identifier: BSD-2-Clause */
/* For the board.h of each board: how its RAM is used, and the kernel window. */
#ifndef BILBY_RAM_H
#define BILBY_RAM_H

#define RAM_BYTES    0x08000000
#define KERNEL_PHYSICAL (RAM_BASE + 0x00010000) /* of the kernel's first byte */
#define BOOT_HEAP    (RAM_BASE + 0x00100000)    /* objects of the first thread */
#define USER_IMAGE   (RAM_BASE + 0x00200000)    /* where the first program is loaded */
#define ROOT_FRAME_1M_BASE  (RAM_BASE + 0x00300000)
#define ROOT_FRAME_16M_BASE (RAM_BASE + 0x01000000)
#define DIRT         (RAM_BASE + 0x00400000)    /* a program may leave data here, in untyped memory */
#define DIRT_BYTES   0x40000      /* boot does not clear this much of it */
#define UNTYPED_REGIONS { { RAM_BASE + 0x00400000, 22 }, { RAM_BASE + 0x00800000, 23 }, \
                          { RAM_BASE + 0x02000000, 25 }, \
                          LAST_REGIONS }
#ifdef CHECKED
#define LAST_REGIONS { RAM_BASE + 0x04000000, 25 }, { RAM_BASE + 0x06000000, 24 }
#define CHECK_MEMORY 0xf7000000    /* of the checks, behind the last region */
#else
#define LAST_REGIONS { RAM_BASE + 0x04000000, 26 }
#endif

/* The kernel window: the top 256 MiB of every address space. */
#define WINDOW_BASE  0xf0000000
#define DEVICE_WINDOW 0xf8000000   /* 1 MiB, mapped by pages, uncached */
#define VECTOR_PAGE  0xffff0000

#endif
