/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of the ARMv6 tables (extended format), domain 0. */
#ifndef BILBY_VSPACE_H
#define BILBY_VSPACE_H

#define SIZE_4K  0
#define SIZE_64K 1
#define SIZE_1M  2
#define SIZE_16M 3

#define DESCRIPTOR_TYPE  0x3u
#define DIRECTORY_TABLE  0x1u        /* first level: points to a page table */

/* First level: sections. */
#define SECTION          0x00002u
#define SECTION_SUPER    0x40000u    /* 16 MiB */
#define SECTION_LOCAL    0x20000u    /* nG: tagged with the address space number */
#define SECTION_READ     0x00800u    /* AP 10: user reads */
#define SECTION_WRITE    0x00c00u    /* AP 11: user reads and writes */
#define SECTION_NEVER    0x00010u    /* no execution */

/* Second level: pages. */
#define PAGE_SMALL       0x002u
#define PAGE_LARGE       0x001u
#define PAGE_LOCAL       0x800u
#define PAGE_READ        0x020u
#define PAGE_WRITE       0x030u
#define PAGE_SMALL_NEVER 0x001u
#define PAGE_LARGE_NEVER 0x8000u

/* Memory types, both levels (TEX 000). */
#define MEMORY_CACHED    0xcu        /* normal, write-back, no allocation on write */
#define MEMORY_DEVICE    0x4u        /* shared device */
#define MEMORY_UNCACHED  0x0u        /* strongly ordered */

#endif
