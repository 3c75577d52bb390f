/* SPDX-License-Identifier: BSD-2-Clause */
/* The boot archive of a program, which the Makefile makes. */
    .section .rodata.archive, "a"
    .balign 4
    .global boot_archive, boot_archive_end
boot_archive:
    .incbin ARCHIVE
boot_archive_end:
