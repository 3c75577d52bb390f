/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs use of the C library's header of this name; the compiler may call the first four by itself. */
#ifndef USER_STRING_H
#define USER_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
int memcmp(const void *a, const void *b, size_t count);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

#endif
