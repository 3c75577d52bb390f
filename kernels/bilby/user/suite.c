/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the tests of suite[], in TAP. */
#include "tests.h"

int main(const struct boot_info *boot_info);

bool same(const char *what, word_t got, word_t expected)
{
    if (got == expected)
        return true;
    put_string("# ");
    put_string(what);
    put_string(" is ");
    put_hex(got);
    put_string(", expected ");
    put_hex(expected);
    put_string("\n");
    return false;
}

static void put_result(bool good, word_t number, const char *sentence)
{
    put_string(good ? "ok " : "not ok ");
    put_number(number);
    put_string(" - ");
    put_string(sentence);
    put_string("\n");
}

int main(const struct boot_info *boot_info)
{
    word_t count = 0;
    word_t number = 0;
    word_t failed = 0;

    if (frame_map(ROOT_UART_FRAME, ROOT_PAGE_DIRECTORY, UART_ADDRESS, RIGHT_WRITE, 0))
        return 2;
    for (const struct test *const *tests = suite; *tests != NULL; tests++)
        for (const struct test *test = *tests; test->run != NULL; test++)
            count++;
    put_string("TAP version 13\n1..");
    put_number(count);
    put_string("\n");
    world_init(boot_info);
    for (const struct test *const *tests = suite; *tests != NULL; tests++) {
        for (const struct test *test = *tests; test->run != NULL; test++) {
            bool good;

            world_renew();
            good = test->run();
            failed += !good;
            put_result(good, ++number, test->sentence);
        }
    }
    finish(failed);
}
