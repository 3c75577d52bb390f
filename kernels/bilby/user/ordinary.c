/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests: C needs no care about the kernel.  It divides, computes with 64 bits and with fractions, and
 * copies structures; what the compiler calls for that is linked.  Built twice, the second time as
 * Thumb code (thumb-ordinary.elf).
 */
#include "tests.h"
#include <string.h>

#ifdef __thumb__
#define IN_THUMB 1
#else
#define IN_THUMB 0
#endif

typedef unsigned long long wide_t;

/* Operands that the compiler does not know. */
static volatile int minus_hundred = -100, seven = 7;
static volatile unsigned int many = 4000000000u;
static volatile wide_t wide = 0x123456789abcdef0ull;
static volatile long long wide_minus = -10000000000ll;
static volatile double third = 1.0 / 3;

static bool integers_are_divided(void)
{
    SAME((word_t)(minus_hundred / seven), (word_t)-14);
    SAME((word_t)(minus_hundred % seven), (word_t)-2);
    SAME(many / (unsigned int)seven, 571428571);
    SAME(many % (unsigned int)seven, 3);
    return true;
}

static bool wide_is(const char *what, wide_t got, wide_t expected)
{
    return same(what, (word_t)got, (word_t)expected)
        && same(what, (word_t)(got >> 32), (word_t)(expected >> 32));
}

static bool wide_integers(void)
{
    return wide_is("product", wide * (unsigned int)seven, 0x7f6e5d4c3b2a1890ull)
        && wide_is("quotient", wide / (unsigned int)seven, 0x0299c335ccf668fdull)
        && wide_is("remainder", wide % many, 0xce753ef0ull)
        && wide_is("signed quotient", (wide_t)(wide_minus / seven), (wide_t)-1428571428ll)
        && wide_is("signed remainder", (wide_t)(wide_minus % seven), (wide_t)-4ll)
        && wide_is("shifted", wide << seven >> (seven + 4), 0x0003456789abcdefull)
        && wide_is("sum", wide + (wide_t)wide_minus, 0x1234567646b0faf0ull);
}

static bool fractions(void)
{
    SAME((word_t)(third * 3000000.0 + 0.5), 1000000);
    SAME((word_t)(float)(many / third / 3), 4000000000u);
    SAME(third < 0.25, false);
    return true;
}

struct record {
    word_t words[40];
    char name[24];
};

static struct record copied(const struct record *record)
{
    struct record copy = *record;

    copy.words[3] = 99;
    return copy;
}

static bool structures_are_copied(void)
{
    struct record first = { { 1, 2, 3 }, "first" }, second;

    second = copied(&first);
    SAME(first.words[3], 0);
    SAME(second.words[3], 99);
    second.words[3] = 0;
    SAME((word_t)memcmp(&first, &second, sizeof(first)), 0);
    second.name[4] = 's';
    SAME(memcmp(&first, &second, sizeof(first)) > 0, true);
    SAME(strlen(second.name), 5);
    SAME(strcmp("first", first.name), 0);
    SAME(strcmp("", first.name) < 0, true);
    return true;
}

static bool overlapping_bytes_move(void)
{
    char text[] = "0123456789";

    memmove(text + 2, text, 6);
    SAME((word_t)memcmp(text, "0101234589", 10), 0);
    memmove(text, text + 1, 9);
    SAME((word_t)memcmp(text, "1012345899", 10), 0);
    memset(text + 3, 'x', 2);
    SAME((word_t)strcmp(text, "101xx45899"), 0);
    return true;
}

/* By the names of the run-time ABI, which other compilers call for the same. */
void __aeabi_memcpy(void *to, const void *from, size_t count);
void __aeabi_memmove4(void *to, const void *from, size_t count);
void __aeabi_memset(void *to, size_t count, int value);
void __aeabi_memclr8(void *to, size_t count);

static bool abi_names(void)
{
    wide_t words[3] = { 1, 2, 3 };
    char text[] = "0123456789";

    __aeabi_memcpy(text + 5, text, 3);
    SAME((word_t)strcmp(text, "0123401289"), 0);
    __aeabi_memset(text, 4, 'x');
    SAME((word_t)strcmp(text, "xxxx401289"), 0);
    __aeabi_memmove4(words + 1, words, sizeof(words[0]) * 2);
    __aeabi_memclr8(words, sizeof(words[0]));
    return wide_is("cleared", words[0], 0) && wide_is("moved", words[1], 1)
        && wide_is("moved", words[2], 2);
}

/* A thread begins at a function's address and stays in the state that the address says. */
static void divides(word_t value)
{
    tell(value / (word_t)seven);
    rest();
}

static bool a_thread_divides(void)
{
    struct child child = run_child(divides, 700, 10, 0, 0);
    struct registers registers;

    SAME(wait_report(), 100);
    let_others_run();
    SAME(tcb_suspend(child.tcb), ERROR_NONE);
    SAME(tcb_read_registers(child.tcb, &registers), ERROR_NONE);
    SAME(registers.cpsr >> 5 & 1, IN_THUMB);
    return true;
}

static const struct test tests[] = {
    { integers_are_divided, "integers are divided" },
    { wide_integers, "integers of 64 bits are multiplied, divided and shifted" },
    { fractions, "numbers with fractions" },
    { structures_are_copied, "structures are copied and compared" },
    { overlapping_bytes_move, "bytes move to where they overlap" },
    { abi_names, "bytes are copied, moved, set and cleared by the names of the ABI" },
    { a_thread_divides, "a thread divides in the state of its function" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
