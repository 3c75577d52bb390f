/* SPDX-License-Identifier: BSD-2-Clause */
/* See work.h. */
#include "work.h"

#define MEASURE_TURNS (1u << 20)

word_t work_turns;

void work(word_t turns)
{
    if (turns == 0)
        return;
    __asm__ volatile("1: subs %0, %0, #1\n\tbne 1b" : "+r"(turns) : : "cc");
}

/* The difference of three times that many turns and that many, without the clock's time. */
void work_measure(void)
{
    ticks_t start = clock_now(), once, end;

    work(MEASURE_TURNS);
    once = clock_now();
    work(3 * MEASURE_TURNS);
    end = clock_now();
    work_turns = quotient(2 * MEASURE_TURNS * WORK_TICKS, (word_t)(end - once - (once - start)));
}

word_t turns_of(word_t ticks)
{
    return (word_t)(((ticks_t)ticks * work_turns) >> 10);
}

/* By shifts: the library has no division. */
word_t quotient(word_t sum, word_t count)
{
    word_t result = 0, shift = 0;

    if (count == 0)
        return 0;
    while (count <= sum >> 1 && !(count & 1u << 31)) {
        count <<= 1;
        shift++;
    }
    for (;; count >>= 1, shift--) {
        result <<= 1;
        if (sum >= count) {
            sum -= count;
            result |= 1;
        }
        if (shift == 0)
            return result;
    }
}

void figure_add(struct figure *figure, word_t value)
{
    figure->sum += value;
    if (figure->count++ == 0 || value < figure->least)
        figure->least = value;
}

static void put_named(const char *name, const char *what, word_t value)
{
    put_string("# ");
    put_string(name);
    put_string(what);
    put_string(" ");
    put_number(value);
    put_string("\n");
}

void figure_print(const char *name, const struct figure *figure)
{
    put_named(name, "-mean", quotient(figure->sum, figure->count));
    put_named(name, "-least", figure->least);
}
