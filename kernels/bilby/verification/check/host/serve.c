/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives the kernel's handlers as entry.S would, one operation at a time, with
 * every invariant checked after each: see serve.h.
 *
 * A system call with FORCE_EACH runs once as it is, then, from the same state,
 * once for each test of pending interrupts with an interrupt forced there, and
 * with one forced in every attempt: at its first test, or at its first to third in
 * turn.  All must end in the same memory, after at most one attempt more than there
 * are tests, and each interrupt must be taken exactly once.  Two exceptions:
 *   a run in which another thread, more urgent, comes in between is only checked
 *   for invariants;
 *   a call that deletes the very capability, CNode or message buffer that it is made
 *   through may fail to find it when it is made again; that made after its end it
 *   cannot be read either is checked.
 * All of these happen at one time of the clock.
 * Reply-and-receive must end as a reply, an interrupt and a receive do, where it is not atomic.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <kernel.h>
#include <interrupts.h>

#include "../invariants.h"
#include "memory.h"
#include "model.h"
#include "serve.h"

#define CHANGES_MAX  65536u
#define FORCED_MAX   48u
#define SECONDS_MAX  20 /* of processor time, for one operation, if the command line has no other */
#define EVERY_ATTEMPT 0xffffffffu /* at its first test */
#define VARIED        0xfffffffeu /* every attempt, at its first, second or third test in turn */

const char *__asan_default_options(void);
void boot_main(void);

static jmp_buf failure;
static jmp_buf left_call; /* where a call or fault is left to for an interrupt */
static const char *reason = "";
static char text[256];
static struct change changes[CHANGES_MAX];
static struct outcome {
    word_t count;
    struct change changes[CHANGES_MAX];
} expected[2];                          /* run_expected */

/* Write faults are how the memory is tracked. */
const char *__asan_default_options(void)
{
    return "handle_segv=0:allow_user_segv_handler=1:detect_leaks=0:exitcode=72";
}

void idle_loop(void)
{
}

void kernel_panic(void)
{
    snprintf(text, sizeof(text), "the kernel panicked");
    longjmp(failure, STATUS_PANIC);
}

void leave_to_interrupt(void)
{
    longjmp(left_call, 1);
}

void check_failed(const char *invariant, word_t address)
{
    snprintf(text, sizeof(text), "%s (at %#x)%s", invariant, address, reason);
    longjmp(failure, STATUS_FAILED);
}

static void check(void)
{
    check_invariants();
    model_check();
}

/* The next operation begins; the objects are the last check's. */
static void begin(void)
{
    memory_commit();
    universe_know();
}

/* ---- one system call ----------------------------------------------------- */

/* The SVC is executed, perhaps again: in an IT block its state goes on to the next instruction. */
static void execute_svc(struct tcb *caller)
{
    word_t cpsr = caller->regs[REG_CPSR];
    word_t state = (cpsr >> 8 & 0xfc) | (cpsr >> 25 & 3);

    if (caller->regs[REG_PC] == PC_OF_SVC + 4 - (cpsr & CPSR_THUMB ? 2 : 4)) {
        state = state & 7 ? (state & 0xe0) | (state << 1 & 0x1f) : 0;
        caller->regs[REG_CPSR] =
            (cpsr & ~MACHINE_CPSR_IT) | (state & 0xfc) << 8 | (state & 3) << 25;
    }
    caller->regs[REG_PC] = PC_OF_SVC + 4;
}

/* Interrupts that are pending are taken. */
static void take_pending(void)
{
    while (model_is_pending()) {
        model_begin();
        handle_interrupt();
        check();
    }
}

/*
 * Nobody else runs: the idle thread makes its system call, then sleeps until another thread
 * has run and its pc was set back; with an interrupt at none of its steps, or at each.
 * True if it was interrupted: then whoever it has woken may have run before the rest.
 */
static bool run_idle(bool interrupted)
{
    word_t asleep = (word_t)idle_loop + 8;
    volatile bool left = false; /* kept over setjmp */

    while (current_thread == &idle_thread && idle_thread.regs[REG_PC] != asleep) {
        idle_thread.regs[REG_PC] = asleep;
        model_begin();
        model_force(interrupted ? 1 : 0);
        if (setjmp(left_call) == 0) {
            handle_syscall(0, 0, SYS_IDLE);
        } else {
            left = true;
            handle_interrupt();
        }
        check();
        take_pending();
    }
    model_force(0);
    return left;
}

/*
 * One attempt, as entry.S makes it; interrupts that are pending at its end, or afterwards,
 * are then taken.  True if it was preempted: the pc is then back on the SVC.
 */
static bool attempt(struct tcb *caller, word_t force)
{
    word_t size = caller->regs[REG_CPSR] & CPSR_THUMB ? 2 : 4;
    bool left, preempted;

    model_force(force);
    model_begin();
    execute_svc(caller);
    left = setjmp(left_call) != 0;
    if (!left)
        handle_syscall(caller->regs[0], caller->regs[1], caller->regs[7]);
    preempted = left && caller->regs[REG_PC] == PC_OF_SVC + 4 - size;
    if (left) {
        if (!preempted && caller->regs[REG_PC] != PC_OF_SVC + 4)
            check_failed("P1 the pc of a call that was left is on the SVC or behind it",
                         (word_t)caller);
        handle_interrupt();
    }
    if (!preempted)
        check_call_is_over(caller);
    check();
    take_pending();
    if (force != 0 && model_tests() >= force && model_taken() != 1)
        check_failed("P2 a forced interrupt is taken exactly once", model_taken());
    return preempted;
}

/*
 * Of the call that is tried.  Each attempt that is preempted takes a step, and a step ends with a
 * test.  Where lookups are kept, a step may make them invalid: then each is an attempt of its own.
 */
static word_t attempts_max;

static word_t test_of_attempt(word_t force, word_t attempts)
{
    if (force == EVERY_ATTEMPT)
        return 1;
    if (force == VARIED)
        return 1 + attempts % 3;
    return attempts == 0 ? force : 0;
}

/*
 * Until it is done; "force" in the first attempt, or in each.
 * False if another thread runs before it is: one that the call woke, or because
 * the call deletes its own caller, or because nobody else runs and the idle thread is preempted.
 */
static bool run_syscall(struct tcb *caller, word_t force, word_t *total)
{
    word_t tests = 0;

    for (word_t attempts = 0;; attempts++) {
        bool preempted = attempt(caller, test_of_attempt(force, attempts));

        tests += model_tests();
        *total = tests;
        if (!preempted || caller != current_thread)
            return !run_idle(force == EVERY_ATTEMPT || force == VARIED) && !preempted;
        if (attempts == attempts_max)
            check_failed("P4 a preempted call ends after as many attempts as it has tests", attempts);
    }
}

static void set_registers(struct tcb *caller, const word_t *argument)
{
    memcpy(caller->regs, argument, 6 * sizeof(word_t));
    caller->regs[7] = argument[6];
    if (argument[6] == SYS_SIGNAL_RECEIVE || argument[6] == SYS_NB_SEND_RECEIVE)
        caller->regs[6] = argument[ARGUMENT_SECOND];
    execute_svc(caller);
}

/* The call cannot be read: it deleted its own capability. */
static bool lost_its_way(const struct tcb *caller)
{
    word_t error = caller->regs[0] & SYSCALL_FAILED
        ? caller->regs[0] & 0xff : message_label(caller->regs[1]);

    return error == ERROR_LOOKUP_FAILED || error == ERROR_INVALID_CAPABILITY
        || error == ERROR_TRUNCATED; /* its message buffer is gone */
}

/*
 * Made once more after it is done, the call cannot be read: only then may a preempted run lose its
 * way.  The caller undoes the changes of this.
 */
static bool deletes_its_way(struct tcb *caller, const word_t *argument)
{
    current_thread = caller;
    set_registers(caller, argument);
    model_force(0);
    handle_syscall(argument[0], argument[1], argument[6]);
    return lost_its_way(caller);
}

static struct list threads_before; /* the operation, which may delete some of them */

/* The outcome of an operation: its changes, without the lookups of threads.  To be undone. */
static word_t outcome(struct change *list)
{
    word_t count, kept = 0;

    lookups_unmark();
    count = memory_changes(list, CHANGES_MAX);

    for (word_t i = 0; i < count; i++)
        if (!is_kept_lookup(&threads_before, list[i].address))
            list[kept++] = list[i];
    return kept;
}

/* How many of "now" changes are as expected, up to the first that is not. */
static word_t difference(const struct outcome *wanted, word_t now)
{
    word_t i;

    for (i = 0; i < now && i < wanted->count; i++)
        if (memcmp(&changes[i], &wanted->changes[i], sizeof(changes[i])) != 0)
            break;
    return i;
}

/* Memory is as one of the outcomes has it. */
static bool is_expected(word_t ways)
{
    word_t now = outcome(changes);

    for (word_t way = 0; way < ways; way++)
        if (now == expected[way].count && difference(&expected[way], now) == now)
            return true;
    return false;
}

static _Noreturn void fail_otherwise(word_t ways, word_t force)
{
    word_t now = outcome(changes);
    const struct outcome *wanted = &expected[ways - 1];
    word_t i = difference(wanted, now);

    snprintf(text, sizeof(text),
             "P3 preempted at test %u, memory ends otherwise: %#x = %#x, expected %#x = %#x",
             force, i < now ? changes[i].address : 0, i < now ? changes[i].value : 0,
             i < wanted->count ? wanted->changes[i].address : 0,
             i < wanted->count ? wanted->changes[i].value : 0);
    longjmp(failure, STATUS_FAILED);
}

/* Each test in turn; of more than FORCED_MAX the first and last, and some between. */
static word_t next_force(word_t force, word_t tests)
{
    word_t edge = FORCED_MAX / 3;

    if (tests <= FORCED_MAX || force < edge || force + edge > tests)
        return force + 1;
    force += tests / edge;
    return force + edge > tests ? tests - edge + 1 : force;
}

/*
 * The steps of reply-and-receive if it is preempted between its phases: a reply, an interrupt, a
 * receive.  False if another thread runs before the receive.
 */
static bool run_phases(struct tcb *server, const word_t *argument)
{
    word_t tests;

    server->regs[7] = SYS_REPLY;
    (void)run_syscall(server, 0, &tests);
    if (current_thread != server)
        return false;
    model_raise(PREEMPT_LINE);
    handle_interrupt();
    if (current_thread != server)
        return false;
    set_registers(server, argument);
    server->regs[7] = SYS_RECEIVE;
    (void)run_syscall(server, 0, &tests);
    server->regs[7] = argument[6];
    return true;
}

/*
 * Memory as a preempted run must leave it, in one of so many ways: a reply-and-receive that is
 * preempted before it replied, or interrupted when all is done, ends like one that is not.
 * 0 if there may be one more way, and nothing to compare with.
 */
static word_t run_expected(struct tcb *caller, const word_t *argument)
{
    expected[0].count = outcome(expected[0].changes);
    if (argument[6] != SYS_REPLY_RECEIVE || REPLY_WAIT_ATOMIC)
        return 1;
    memory_undo();
    if (!run_phases(caller, argument))
        return 0;
    expected[1].count = outcome(expected[1].changes);
    return 2;
}

/* From the same state, preempted at each test in turn, and at the first of every attempt. */
static void run_preempted(struct tcb *caller, const word_t *argument, word_t tests)
{
    word_t ways = run_expected(caller, argument);
    bool may_lose_its_way = deletes_its_way(caller, argument);

    for (word_t force = 1; force <= tests + 2; force = next_force(force, tests)) {
        word_t all = force == tests + 1 ? EVERY_ATTEMPT : VARIED;
        word_t ignored;

        memory_undo();
        if (!run_syscall(caller, force > tests ? all : force, &ignored) || ways == 0
            || is_expected(ways))
            continue;
        if (!lost_its_way(caller))
            fail_otherwise(ways, force);
        if (!may_lose_its_way)
            check_failed("P3 a preempted call cannot be made again", force);
    }
}

static word_t do_syscall(const word_t *argument)
{
    struct tcb *caller = current_thread;
    word_t tests;

    if (caller == &idle_thread)
        check_failed("(the driver's mistake: nobody runs)", 0);
    set_registers(caller, argument);
    begin();
    threads_before = universe->threads;
    attempts_max = 0;
    if (!run_syscall(caller, 0, &tests))
        check_failed("P1 a call is preempted without an interrupt", (word_t)caller);
    if (argument[7] != FORCE_EACH || tests == 0)
        return tests;
    reason = ", in a preempted run";
    attempts_max = tests * (1 + lookups_kept());
    run_preempted(caller, argument, tests);
    memory_undo();
    run_syscall(caller, 0, &tests);
    reason = "";
    return tests;
}

/* Made once; the caller makes it again when it runs next, after others have run. */
static word_t do_attempt(const word_t *argument)
{
    struct tcb *caller = current_thread;
    word_t tests;

    set_registers(caller, argument);
    begin();
    model_force_by(argument[7] >> 16 ? argument[7] >> 16 : PREEMPT_LINE);
    (void)attempt(caller, argument[7] & 0xffff);
    tests = model_tests();
    model_force_by(PREEMPT_LINE);
    (void)run_idle(false);
    return tests;
}

/* ---- the other operations -------------------------------------------------- */

static void do_interrupt(word_t irq)
{
    begin();
    model_begin();
    model_raise(irq);
    if (model_is_pending()) {
        model_force(0);
        handle_interrupt();
    }
    check();
    (void)run_idle(false);
}

static void do_fault(word_t kind, word_t address, word_t status)
{
    begin();
    model_begin();
    model_set_fault(address, status);
    if (setjmp(left_call) != 0)
        handle_interrupt();
    else if (kind == FAULT_UNDEFINED)
        handle_undefined();
    else if (kind == FAULT_PREFETCH_ABORT)
        handle_prefetch_abort();
    else
        handle_data_abort();
    check();
    (void)run_idle(false);
}

static void do_writes(const struct change *list, word_t count)
{
    for (word_t i = 0; i < count; i++) {
        *(word_t *)list[i].address = list[i].value;
        *memory_view(list[i].address) = list[i].value;
    }
    memory_commit();
}

/* ---- boot and the loop ------------------------------------------------------ */

/*
 * The head of a program of one page of text and a piece of one of data.  BILBY_IMAGE names a defect
 * of it, to see the kernel refuse it.
 */
static void load_program(void)
{
    word_t *image = (word_t *)to_window(USER_IMAGE);
    const char *wrong = getenv("BILBY_IMAGE");

    image[0] = IMAGE_MAGIC;
    image[IMAGE_TEXT_BYTES / 4] = 4096;
    image[IMAGE_BYTES / 4] = 4096 + 100;
    image[IMAGE_ENTRY / 4] = PC_OF_SVC;
    if (wrong == NULL)
        return;
    if (strcmp(wrong, "magic") == 0)
        image[0] = IMAGE_MAGIC + 1;
    else if (strcmp(wrong, "text") == 0)
        image[IMAGE_TEXT_BYTES / 4] = 8192;
    else
        image[IMAGE_BYTES / 4] = IMAGE_BYTES_MAX + 4096;
}

/*
 * The work of boot.S: the kernel's descriptors, which every directory gets, and a descriptor of RAM
 * at its place, for the way into the window.  The last but one stays invalid, as on the boards.
 */
static void make_kernel_directory(void)
{
    for (word_t i = 0; i < KERNEL_DESCRIPTORS; i++)
        if (i != KERNEL_DESCRIPTORS - 2)
            kernel_directory.descriptor[4096 - KERNEL_DESCRIPTORS + i] =
                (RAM_BASE + (i << 20)) | 0x40e;
    kernel_directory.descriptor[RAM_BASE >> 20] = RAM_BASE | 0x40e;
    model_know(&kernel_directory, sizeof(kernel_directory));
}

static void read_all(void *to, size_t bytes)
{
    if (bytes != 0 && fread(to, 1, bytes, stdin) != bytes)
        exit(0);
}

static void answer(word_t status, word_t count, word_t tests)
{
    word_t length = status == STATUS_FAILED || status == STATUS_PANIC
        ? (word_t)strlen(text) : 0;
    word_t head[5] = { status, count, tests, (word_t)current_thread, length };

    fwrite(head, sizeof(head), 1, stdout);
    fwrite(changes, sizeof(changes[0]), count, stdout);
    fwrite(text, 1, length, stdout);
    fflush(stdout);
}

static word_t read_words(word_t address, word_t words)
{
    for (word_t i = 0; i < words && i < CHANGES_MAX; i++)
        changes[i] = (struct change){ address + 4 * i, ((word_t *)address)[i] };
    return words < CHANGES_MAX ? words : CHANGES_MAX;
}

static word_t do_operation(word_t operation, const word_t *argument, word_t *tests)
{
    model_set_time((count_t)argument[ARGUMENT_TIME + 1] << 32 | argument[ARGUMENT_TIME]);
    switch (operation) {
    case OP_SYSCALL:
        *tests = do_syscall(argument);
        return STATUS_GOOD;
    case OP_ATTEMPT:
        *tests = do_attempt(argument);
        return STATUS_GOOD;
    case OP_INTERRUPT:
        do_interrupt(argument[0]);
        return STATUS_GOOD;
    case OP_FAULT:
        do_fault(argument[0], argument[1], argument[2]);
        return STATUS_GOOD;
    case OP_WRITE:
        return STATUS_GOOD;
    case OP_RESET:
        memory_reset();
        universe_forget();
        universe_find();
        return STATUS_GOOD;
    case OP_START:
        memory_start();
        return STATUS_GOOD;
    case OP_PUBLISHED:
        return model_is_published(argument[0], argument[1]) ? STATUS_GOOD : STATUS_NO;
    case OP_STORE:
        *(word_t *)argument[0] = argument[1];
        memory_commit();
        return STATUS_GOOD;
    case OP_DEVICE:
        model_device_writes(argument[0], argument[1]);
        memory_commit();
        return STATUS_GOOD;
    case OP_CLEAN:
        return model_is_clean(argument[0], argument[1]) ? STATUS_GOOD : STATUS_NO;
    case OP_FORGOTTEN:
        return model_is_forgotten(argument[0], argument[1]) ? STATUS_GOOD : STATUS_NO;
    default:
        exit(0);
    }
}

static long seconds_max = SECONDS_MAX;

/* A kernel that does not end is stopped by a signal. */
static void limit_time(void)
{
    const struct itimerval limit = { .it_value.tv_sec = seconds_max };

    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static void serve(void)
{
    static word_t request[1 + ARGUMENTS + 1];
    static struct change writes[WRITES_MAX];
    static word_t tests;
    word_t status;

    for (;;) {
        read_all(request, sizeof(request));
        if (request[1 + ARGUMENTS] > WRITES_MAX)
            exit(1);
        read_all(writes, request[1 + ARGUMENTS] * sizeof(writes[0]));
        do_writes(writes, request[1 + ARGUMENTS]);
        tests = 0;
        if (request[0] == OP_READ) {
            answer(STATUS_GOOD, read_words(request[1], request[2]), 0);
            continue;
        }
        limit_time();
        model_force_by(PREEMPT_LINE);
        status = (word_t)setjmp(failure);
        if (status == 0)
            status = do_operation(request[0], &request[1], &tests);
        reason = "";
        answer(status, memory_changes(changes, CHANGES_MAX), tests);
    }
}

int main(int count, char **words)
{
    if (count > 1)
        seconds_max = atol(words[1]);
    memory_map();
    model_init();
    load_program();
    make_kernel_directory();
    if (setjmp(failure) != 0) {
        fprintf(stderr, "boot: %s\n", text);
        return 1;
    }
    limit_time();
    boot_main();
    check();
    memory_track();
    serve();
    return 0;
}
