/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boot archive: files in one piece of memory, in the format of "cpio -H newc".
 *
 *     struct file file;
 *     if (archive_find(boot_archive, boot_archive_end, "shell.elf", &file))
 *         ...  file.bytes bytes at file.start
 *
 * The input is untrusted: a damaged or truncated archive has no file from there on.
 */
#ifndef USER_ARCHIVE_H
#define USER_ARCHIVE_H

#include "bilby.h"

struct file {
    const unsigned char *start;
    word_t bytes;
};

/* Of this program: archive.S. */
extern const unsigned char boot_archive[], boot_archive_end[];

bool archive_find(const unsigned char *archive, const unsigned char *end, const char *name,
                  struct file *found);

#endif
