/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See string.h: byte by byte.  At the end are the names of the ARM's run-time ABI (section 4.3.4), which
 * compilers call: a 4 or 8 says how addresses are aligned, and set and clear count before the value.
 */
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

#define SAME_AS(name) __attribute__((alias(name)))

void *__aeabi_memcpy(void *restrict to, const void *restrict from, size_t count) SAME_AS("memcpy");
void *__aeabi_memcpy4(void *restrict to, const void *restrict from, size_t count) SAME_AS("memcpy");
void *__aeabi_memcpy8(void *restrict to, const void *restrict from, size_t count) SAME_AS("memcpy");
void *__aeabi_memmove(void *to, const void *from, size_t count) SAME_AS("memmove");
void *__aeabi_memmove4(void *to, const void *from, size_t count) SAME_AS("memmove");
void *__aeabi_memmove8(void *to, const void *from, size_t count) SAME_AS("memmove");

void *__aeabi_memset(void *to, size_t count, int value);
void *__aeabi_memset(void *to, size_t count, int value)
{
    return memset(to, value, count);
}

void *__aeabi_memset4(void *to, size_t count, int value) SAME_AS("__aeabi_memset");
void *__aeabi_memset8(void *to, size_t count, int value) SAME_AS("__aeabi_memset");

void *__aeabi_memclr(void *to, size_t count);
void *__aeabi_memclr(void *to, size_t count)
{
    return memset(to, 0, count);
}

void *__aeabi_memclr4(void *to, size_t count) SAME_AS("__aeabi_memclr");
void *__aeabi_memclr8(void *to, size_t count) SAME_AS("__aeabi_memclr");
