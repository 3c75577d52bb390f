/* SPDX-License-Identifier: BSD-2-Clause */
/* Text, by put_char: console.c or console_client.c. */
#include "bilby.h"

void put_string(const char *text)
{
    while (*text)
        put_char(*text++);
}

static const word_t tens[] = { 1000000000, 100000000, 10000000, 1000000, 100000,
                               10000, 1000, 100, 10, 1 };

void put_number(word_t value)
{
    bool started = false;

    for (word_t i = 0; i < 10; i++) {
        char digit = '0';

        while (value >= tens[i]) {
            value -= tens[i];
            digit++;
        }
        if (digit != '0' || started || i == 9) {
            started = true;
            put_char(digit);
        }
    }
}

void put_hex(word_t value)
{
    put_string("0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        put_char("0123456789abcdef"[value >> shift & 15]);
}
