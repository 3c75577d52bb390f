/* SPDX-License-Identifier: BSD-2-Clause */
/* A program for loading.c: it reports its argument, data, constants and cleared memory. */
#include "program.h"
#include "world.h"

#define PAGES 3

int main(word_t argument);

static const word_t constants[] = { 1, 10 };
static word_t data[1024] = { 100 };
static word_t cleared[PAGES * 1024];

static word_t say(word_t value)
{
    struct message m = { OWN_FREE, message_make(1, 0, 0, 0), { value, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    return m.w[0];
}

int main(word_t argument)
{
    word_t sum = argument * constants[0] + constants[1] + data[0];

    for (word_t i = 0; i < PAGES * 1024; i++)
        sum += cleared[i];
    data[0] = say(sum);
    say(data[0] + 1);
    *(volatile word_t *)constants = 0; /* a fault: it is read-only */
    return 1;
}
