/* SPDX-License-Identifier: BSD-2-Clause */
/* See archive.h.  A header is a magic number and 13 hexadecimal numbers of 8 digits, in ASCII. */
#include "archive.h"

#define HEADER_BYTES   110
#define MAGIC          "070701"
#define FIELD_BYTES    6  /* which number: the file's size ... */
#define FIELD_NAME     11 /* ... and of its name, its end included */
#define ALIGNMENT      4  /* of the file, and of the next header */

static word_t field(const unsigned char *header, word_t number)
{
    const unsigned char *digit = header + 6 + 8 * number;
    word_t value = 0;

    for (word_t i = 0; i < 8; i++) {
        unsigned char c = digit[i] | 0x20; /* lower case */

        value = value << 4 | (c >= 'a' ? c - 'a' + 10u : c - 0x30u) % 16;
    }
    return value;
}

static bool has_magic(const unsigned char *header)
{
    for (word_t i = 0; i < sizeof(MAGIC) - 1; i++)
        if (header[i] != MAGIC[i])
            return false;
    return true;
}

/* A name of that many bytes, the zero at its end included. */
static bool is_name(const unsigned char *stored, word_t bytes, const char *name)
{
    for (word_t i = 0; i < bytes; i++) {
        if (stored[i] != (unsigned char)name[i])
            return false;
        if (name[i] == 0)
            return i == bytes - 1;
    }
    return false;
}

/* The bytes up to the next multiple, as far as a position in the archive can go. */
static word_t padded(word_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(word_t)(ALIGNMENT - 1);
}

bool archive_find(const unsigned char *archive, const unsigned char *end, const char *name,
                  struct file *found)
{
    word_t size = (word_t)(end - archive);
    word_t at = 0;

    while (size - at >= HEADER_BYTES && has_magic(archive + at)) {
        word_t name_bytes = field(archive + at, FIELD_NAME);
        word_t bytes = field(archive + at, FIELD_BYTES);
        word_t start;

        if (name_bytes > size - at - HEADER_BYTES)
            return false;
        start = padded(at + HEADER_BYTES + name_bytes);
        if (start > size || bytes > size - start)
            return false;
        if (is_name(archive + at + HEADER_BYTES, name_bytes, name)) {
            found->start = archive + start;
            found->bytes = bytes;
            return true;
        }
        at = padded(start + bytes);
        if (at > size)
            return false;
    }
    return false;
}
