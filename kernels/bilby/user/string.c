/* SPDX-License-Identifier: BSD-2-Clause */
/* See string.h: byte by byte. */
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    unsigned char *target = to;
    const unsigned char *source = from;

    while (count--)
        *target++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    unsigned char *target = to;
    const unsigned char *source = from;

    if ((size_t)to - (size_t)from >= count) { /* from the first: none is overwritten before it is read */
        while (count--)
            *target++ = *source++;
        return to;
    }
    while (count--)
        target[count] = source[count];
    return to;
}

void *memset(void *to, int value, size_t count)
{
    unsigned char *byte = to;

    while (count--)
        *byte++ = (unsigned char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t count)
{
    const unsigned char *first = a, *second = b;

    for (; count != 0; count--, first++, second++)
        if (*first != *second)
            return *first - *second;
    return 0;
}

size_t strlen(const char *text)
{
    size_t length = 0;

    while (text[length])
        length++;
    return length;
}

int strcmp(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        continue;
    return (unsigned char)*a - (unsigned char)*b;
}
