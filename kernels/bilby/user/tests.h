/* SPDX-License-Identifier: BSD-2-Clause */
/* A test: a sentence, and a function that says whether it holds. */
#ifndef USER_TESTS_H
#define USER_TESTS_H

#include "world.h"

struct test {
    bool (*run)(void);
    const char *sentence;
};

/* Each file's tests, ended by an empty one. */
extern const struct test object_tests[], ipc_tests[], transfer_tests[], sched_tests[],
    fault_tests[], space_tests[], vspace_tests[], hostile_tests[], delete_tests[], preempt_tests[],
    share_tests[], bound_tests[], device_tests[], time_tests[],
    order_tests[], signal_attacks[], chain_attacks[];

/* The tests of this program, ended by NULL; suite.c has main(). */
extern const struct test *const suite[];

/* The end of the program: finish.c or linger.c. */
_Noreturn void finish(word_t failed);

/* False, with a line that names place and values, unless the two are equal. */
bool same(const char *what, word_t got, word_t expected);

#define SAME(got, expected) do { \
        if (!same(#got, (got), (expected))) return false; } while (0)

#endif
