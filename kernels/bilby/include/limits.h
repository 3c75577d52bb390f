/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every number that bounds a loop of the kernel.  The comment "bound:" beside a
 * loop is an expression over these names and those of bilby/api.h;
 * tools/facts.py evaluates it.
 */
#ifndef BILBY_LIMITS_H
#define BILBY_LIMITS_H

#include <bilby/api.h>

#define ADDRESS_BITS     32  /* of a capability address; each level resolves at least one */
#define LOOKUPS_MAX      8   /* by one system call, or phase of it: at most 7 are needed */
#define LOOKUP_CLASSES   4   /* of priorities, 64 in each */
#define GUARD_BITS       18  /* of a guard's value; its leading bits are zero */
#define CNODE_RADIX_MAX  12
#define UNTYPED_BITS_MIN 4
#define UNTYPED_BITS_MAX 26

#define PRIORITY_WORDS   8   /* 256 priorities in words of 32 */
#define IRQ_LINES        64
#define GENERAL_REGISTERS 13 /* r0 to r12 */

#define RELEASE_PLACES   256 /* contexts that can be bound */
#define RELEASE_LEVELS   4   /* of a heap of fours with so many places, below the first */
#define RELEASE_CHILDREN 4   /* of each of its entries */

#define LINE_BYTES       32  /* of a cache line */
#define LINE_WORDS       8
#define CHUNK_BYTES      1024 /* cleared or copied without a preemption point */
#define CHUNK_LINES      32

#define RETYPE_OBJECTS_MAX 32 /* made by one retype, atomically */

#define KERNEL_DESCRIPTORS      256 /* of a page directory: the kernel window */
#define KERNEL_DESCRIPTOR_LINES 32
#define KERNEL_MAPS_STEPS       16 /* in which they are copied, where that can be preempted */
#define BACK_POINTER_NIBBLES    8
#define LOWEST_NIBBLES          3
#define LARGE_DESCRIPTORS       16  /* equal descriptors of a 64 KiB or 16 MiB mapping */
#define HARDWARE_ASIDS          256
#define ASID_POOLS              16
#define ASID_POOL_ENTRIES       1024 /* numbers for address spaces in one pool */

/* Boot only. */
#define BOOT_IMAGE_FRAMES  192
#define BOOT_UNTYPEDS      16
#define BOOT_DEVICES       32
#define BOOT_CHUNKS        65536 /* of the largest region */

#endif
