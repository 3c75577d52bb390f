/* SPDX-License-Identifier: BSD-2-Clause */
/* The two functions that the compiler may call by itself. */
#include <stddef.h>

void *memset(void *to, int value, size_t count);
void *memcpy(void *to, const void *from, size_t count);

void *memset(void *to, int value, size_t count)
{
    unsigned char *byte = to;

    while (count--)
        *byte++ = (unsigned char)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t count)
{
    unsigned char *target = to;
    const unsigned char *source = from;

    while (count--)
        *target++ = *source++;
    return to;
}
