/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel that checks itself, under QEMU: every invariant after each CHECKED-th run of
 * a handler, before the thread or the interrupt that comes next.  The linker puts these
 * functions in the place of the handlers (--wrap): the kernel's sources are as they are.
 *
 * An invariant that does not hold ends QEMU by semihosting, with a line that names it.
 */
#include "invariants.h"

#define WRITE_STRING 0x04u
#define EXIT         0x20u
#define RUNTIME_ERROR 0x20023u

void __real_handle_syscall(word_t address, word_t message, word_t number);
void __real_handle_interrupt(void);
void __real_handle_undefined(void);
void __real_handle_prefetch_abort(void);
void __real_handle_data_abort(void);
void __wrap_handle_syscall(word_t address, word_t message, word_t number);
void __wrap_handle_interrupt(void);
void __wrap_handle_undefined(void);
void __wrap_handle_prefetch_abort(void);
void __wrap_handle_data_abort(void);

static bool is_begun;
static word_t left; /* runs of handlers until the next check */

static void semihost(word_t operation, const void *argument)
{
    register word_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;

    __asm__ volatile("svc 0x123456" : "+r"(r0) : "r"(r1) : "lr", "memory");
}

static void print_address(word_t address)
{
    static const char digits[] = "0123456789abcdef";
    char text[] = " at 0x........\n";

    for (word_t i = 0; i < 8; i++)
        text[6 + i] = digits[address >> (28 - 4 * i) & 0xf];
    semihost(WRITE_STRING, text);
}

_Noreturn void check_failed(const char *invariant, word_t address)
{
    static const word_t status[] = { RUNTIME_ERROR, 1 };

    semihost(WRITE_STRING, "Bail out! invariant ");
    semihost(WRITE_STRING, invariant);
    print_address(address);
    semihost(EXIT, status);
    for (;;)
        continue;
}

/* Boot clears only linker-placed memory. */
static void clear_universe(void)
{
    word_t *word = (word_t *)universe;

    for (word_t i = 0; i < sizeof(*universe) / sizeof(*word); i++)
        word[i] = 0;
}

static void check(void)
{
    if (left-- != 0 && is_begun)
        return;
    if (!is_begun)
        clear_universe();
    is_begun = true;
    left = CHECKED - 1;
    check_invariants();
}

/* Of a call that is left for an interrupt, only after that is handled. */
void __wrap_handle_syscall(word_t address, word_t message, word_t number)
{
    __real_handle_syscall(address, message, number);
    check();
}

void __wrap_handle_interrupt(void)
{
    __real_handle_interrupt();
    check();
}

void __wrap_handle_undefined(void)
{
    __real_handle_undefined();
    check();
}

void __wrap_handle_prefetch_abort(void)
{
    __real_handle_prefetch_abort();
    check();
}

void __wrap_handle_data_abort(void)
{
    __real_handle_data_abort();
    check();
}
