/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: priorities, yield, notifications, interrupts. */
#include "tests.h"
#include "ticker.h"
#include <devices.h>

#define TIMER_ADDRESS 0x001fb000u

/* Slots of the timer's driver. */
#define DRIVER_HANDLER      CHILD_OTHER
#define DRIVER_NOTIFICATION (CHILD_OTHER + 1)

static bool urgent_first(void)
{
    static const word_t priorities[] = { 3, 200, 0, 31, 32, 254, 255, 96 };
    static const word_t order[] = { 255, 254, 200, 96, 32, 31, 3, 0 };

    for (word_t i = 0; i < 8; i++)
        run_child(tells, priorities[i], priorities[i], 0, 0);
    for (word_t i = 0; i < 8; i++)
        SAME(wait_report(), order[i]);
    return true;
}

static bool equal_in_turn(void)
{
    for (word_t i = 0; i < 4; i++)
        run_child(tells, i, 50, 0, 0);
    for (word_t i = 0; i < 4; i++)
        SAME(wait_report(), i);
    return true;
}

static bool priority_changes(void)
{
    struct child low = run_child(tells, 1, 10, 0, 0);
    struct child high = run_child(tells, 2, 20, 0, 0);

    SAME(tcb_set_priority(low.tcb, 40), 0); /* both are in a ready queue */
    SAME(tcb_set_priority(high.tcb, 30), 0);
    SAME(wait_report(), 1);
    SAME(wait_report(), 2);
    SAME(tcb_set_priority(low.tcb, 256), ERROR_RANGE);
    SAME(tcb_set_priority(low.tcb, ~0u), ERROR_RANGE);
    return true;
}

/* Raises a thread above itself: that one runs at once, then this one goes on. */
static void raiser(word_t priority)
{
    struct message m = { CHILD_OTHER, message_make(1, 0, 0, LABEL_TCB_SET_PRIORITY),
                         { priority, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    tell(message_label(m.info));
    rest();
}

static bool raise_at_most_to_own(void)
{
    struct child other = make_child(tells, 5, 1, 0);
    struct child child = make_child(raiser, 21, 20, 0);
    struct child again = make_child(raiser, 20, 20, 0);

    give(&child, CHILD_OTHER, other.tcb, RIGHTS_ALL, 0);
    give(&again, CHILD_OTHER, other.tcb, RIGHTS_ALL, 0);
    start(&child);
    SAME(wait_report(), ERROR_RANGE);
    start(&again);
    SAME(wait_report(), ERROR_NONE);
    start(&other);
    SAME(wait_report(), 5);
    return true;
}

/* Lowers itself below a ready thread, which then runs first. */
static bool lowering_oneself_yields(void)
{
    struct child child = make_child(raiser, 5, 30, 0);

    give(&child, CHILD_OTHER, child.tcb, RIGHTS_ALL, 0);
    start(&child);
    run_child(tells, 7, 20, 0, 0);
    SAME(wait_report(), 7);
    SAME(wait_report(), ERROR_NONE);
    return true;
}

static void yielder(word_t value)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    for (word_t i = 0; i < 3; i++) {
        send(SYS_SEND, CHILD_ENDPOINT, value + i);
        syscall(SYS_YIELD, &m);
    }
    rest();
}

/* A collector above them takes each message at once; they alternate by yield. */
static void collector(word_t count)
{
    word_t history = 0;

    for (word_t i = 0; i < count; i++)
        history = history << 4 | receive(CHILD_ENDPOINT).w[0];
    tell(history);
    rest();
}

static bool yield_alternates(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(collector, 6, 60, endpoint, 0);
    run_child(yielder, 1, 50, endpoint, 0);
    run_child(yielder, 9, 50, endpoint, 0);
    SAME(wait_report(), 0x192a3b);
    return true;
}

static void yield_alone(word_t count)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    for (word_t i = 0; i < count; i++)
        syscall(SYS_YIELD, &m);
    tell(count);
    rest();
}

static bool yield_needs_nobody(void)
{
    run_child(yield_alone, 5, 70, 0, 0);
    run_child(tells, 6, 69, 0, 0); /* less urgent: yield does not help it */
    SAME(wait_report(), 5);
    SAME(wait_report(), 6);
    return true;
}

/* Signals a waiter above it twice: each time the waiter runs first. */
static void signaller(word_t unused)
{
    (void)unused;
    send(SYS_SEND, CHILD_ENDPOINT, 0);
    tell(100);
    send(SYS_SEND, CHILD_ENDPOINT, 0);
    tell(101);
    rest();
}

static void waiter(word_t unused)
{
    (void)unused;
    for (;;)
        tell(receive(CHILD_ENDPOINT).badge);
}

static bool waking_preempts(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);

    run_child(waiter, 0, 20, notification, 0);
    run_child(signaller, 0, 10, notification, 7);
    SAME(wait_report(), 7);
    SAME(wait_report(), 100);
    SAME(wait_report(), 7);
    SAME(wait_report(), 101);
    return true;
}

static bool signals_accumulate(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    word_t one = badged(notification, RIGHT_SEND, 1);
    word_t four = badged(notification, RIGHT_SEND, 4);
    struct message m;

    SAME(send(SYS_SEND, one, 0), 0);
    SAME(send(SYS_NB_SEND, four, 0), 0);
    SAME(send(SYS_SEND, one, 0), 0);
    m = receive(notification);
    SAME(m.badge, 5);
    SAME(m.info, 0);
    m = receive(one);
    SAME(m.badge, SYSCALL_FAILED | ERROR_NO_RIGHT);
    return true;
}

static bool waiters_in_turn(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    word_t signal = badged(notification, RIGHT_SEND, 3);

    for (word_t i = 0; i < 3; i++)
        run_child(waiter, 0, 20 - i, notification, 0);
    run_child(tells, 50, 1, 0, 0);
    SAME(wait_report(), 50); /* all three wait */
    for (word_t i = 0; i < 3; i++)
        SAME(send(SYS_SEND, signal, 0), 0);
    for (word_t i = 0; i < 3; i++)
        SAME(wait_report(), 3);
    return true;
}

/* ---- the timer ----------------------------------------------------------- */

static word_t acknowledge(void)
{
    struct message m = { DRIVER_HANDLER, message_make(0, 0, 0, LABEL_IRQ_ACKNOWLEDGE),
                         { 0, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    return message_label(m.info);
}

/* Takes "count" interrupts, each while waiting, and reports them. */
static void driver(word_t count)
{
    word_t good = 0;

    for (;;) {
        acknowledge();
        timer_start_every(TIMER_ADDRESS, TIMER_TICKS);
        for (word_t i = 0; i < count; i++) {
            struct message m = receive(DRIVER_NOTIFICATION);

            good += m.badge == 0x10 && timer_has_fired(TIMER_ADDRESS);
            timer_clear(TIMER_ADDRESS);
            acknowledge();
        }
        timer_stop(TIMER_ADDRESS);
        send(SYS_SEND, CHILD_ENDPOINT, good);
        receive(DRIVER_NOTIFICATION); /* a signal by hand: once more */
    }
}

static word_t driver_notification, driver_results;

static bool timer_wakes(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    word_t handler = new_slots(1);
    struct child child = make_child(driver, 5, 200, 0);

    driver_results = make(TYPE_ENDPOINT, 0);
    driver_notification = badged(notification, RIGHTS_ALL, 0x10);
    timer_line = handler;
    SAME(irq_get(TIMER_IRQ, ROOT_CNODE, handler, 32), 0);
    SAME(irq_get(TIMER_IRQ, ROOT_CNODE, new_slots(1), 32), ERROR_ILLEGAL_OPERATION);
    SAME(irq_set_notification(handler, driver_notification), 0);
    SAME(irq_set_notification(handler, driver_notification), ERROR_SLOT_OCCUPIED);
    SAME(frame_map(copy_of(ROOT_TIMER_FRAME), child.directory, TIMER_ADDRESS, RIGHT_WRITE, 0), 0);
    give(&child, CHILD_ENDPOINT, driver_results, RIGHTS_ALL, 0);
    give(&child, DRIVER_HANDLER, handler, RIGHTS_ALL, 0);
    give(&child, DRIVER_NOTIFICATION, notification, RIGHTS_ALL, 0);
    start(&child);
    SAME(receive(driver_results).w[0], 5); /* nobody else runs: from the idle thread */
    return true;
}

/*
 * Every register holds a pattern while interrupts come and go; returns to C with
 * the number of registers that changed.  Runs until the word at r0 is not zero.
 */
word_t hold_registers(volatile word_t *stop);
__asm__(
    "    .text\n"
    "    .arm\n"
    "    .global hold_registers\n"
    "    .type hold_registers, %function\n"
    "hold_registers:\n"
    "    push    {r4-r11, lr}\n"
    "    ldr     r1, =saved_sp\n"
    "    str     sp, [r1]\n"
    "    ldr     r1, =0x11111111\n"
    "    ldr     r2, =0x22222222\n"
    "    ldr     r3, =0x33333333\n"
    "    ldr     r4, =0x44444444\n"
    "    ldr     r5, =0x55555555\n"
    "    ldr     r6, =0x66666666\n"
    "    ldr     r7, =0x77777777\n"
    "    ldr     r8, =0x88888888\n"
    "    ldr     r9, =0x99999999\n"
    "    ldr     r10, =0xaaaaaaaa\n"
    "    ldr     r11, =0xbbbbbbbb\n"
    "    ldr     sp, =0xdddddddd\n"
    "    ldr     lr, =0xeeeeeeee\n"
    "1:  ldr     r12, [r0]\n"
    "    teq     r12, #0\n"
    "    beq     1b\n"
    "    mov     r0, #0\n"
    "    ldr     r12, =0x11111111\n"
    "    teq     r1, r12\n"
    "    addne   r0, r0, #1\n"
    "    teq     r2, r12, lsl #1\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x33333333\n"
    "    teq     r3, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x44444444\n"
    "    teq     r4, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x55555555\n"
    "    teq     r5, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x66666666\n"
    "    teq     r6, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x77777777\n"
    "    teq     r7, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x88888888\n"
    "    teq     r8, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0x99999999\n"
    "    teq     r9, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0xaaaaaaaa\n"
    "    teq     r10, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0xbbbbbbbb\n"
    "    teq     r11, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0xdddddddd\n"
    "    teq     sp, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r12, =0xeeeeeeee\n"
    "    teq     lr, r12\n"
    "    addne   r0, r0, #1\n"
    "    ldr     r1, =saved_sp\n"
    "    ldr     sp, [r1]\n"
    "    pop     {r4-r11, pc}\n"
    "    .ltorg\n"
    "    .bss\n"
    "    .balign 4\n"
    "saved_sp: .space 4\n"
    "    .text\n");

/*
 * All four flags set, or clear, while interrupts come and go; returns the bits
 * that were ever seen wrong.  r0: word to stop at, r1: flags.
 */
word_t hold_flags(volatile word_t *stop, word_t flags);
__asm__(
    "    .text\n"
    "    .arm\n"
    "    .global hold_flags\n"
    "    .type hold_flags, %function\n"
    "hold_flags:\n"
    "    mov     r2, #0\n"
    "1:  msr     cpsr_f, r1\n"
    "    .rept   40\n"
    "    mov     r3, r3\n"
    "    .endr\n"
    "    mrs     r3, cpsr\n"
    "    eor     r3, r3, r1\n"
    "    and     r3, r3, #0xf0000000\n"
    "    orr     r2, r2, r3\n"
    "    ldr     r3, [r0]\n"
    "    teq     r3, #0\n"
    "    beq     1b\n"
    "    mov     r0, r2\n"
    "    bx      lr\n");

#define SHARED_ADDRESS 0x001fa000u /* one frame, in several spaces */

static void holder(word_t unused)
{
    (void)unused;
    tell(hold_registers((volatile word_t *)SHARED_ADDRESS));
    rest();
}

static bool registers_survive(void)
{
    word_t frame = make(TYPE_FRAME_4K, 0);
    volatile word_t *stop = look_at(frame);
    struct child child = make_child(holder, 0, 10, 0);

    SAME(frame_map(copy_of(frame), child.directory, SHARED_ADDRESS, RIGHT_READ, 0), 0);
    start(&child);
    /* The child spins below the driver, so that interrupts hit it. */
    SAME(send(SYS_SEND, driver_notification, 0), 0);
    SAME(receive(driver_results).w[0], 10);
    *stop = 1;
    SAME(wait_report(), 0);
    return true;
}

static void flag_holder(word_t flags)
{
    tell(hold_flags((volatile word_t *)SHARED_ADDRESS, flags));
    rest();
}

static bool flags_survive(void)
{
    static const word_t flags[] = { 0xf0000000, 0, 0xa0000000 };

    for (word_t i = 0; i < 3; i++) {
        word_t frame = make(TYPE_FRAME_4K, 0);
        volatile word_t *stop = look_at(frame);
        struct child child = make_child(flag_holder, flags[i], 10, 0);

        SAME(frame_map(copy_of(frame), child.directory, SHARED_ADDRESS, RIGHT_READ, 0), 0);
        start(&child);
        SAME(send(SYS_SEND, driver_notification, 0), 0);
        SAME(receive(driver_results).w[0], 15 + 5 * i);
        *stop = 1;
        SAME(wait_report(), 0);
    }
    return true;
}

static bool irq_errors(void)
{
    word_t slot = new_slots(2);
    word_t words[] = { 5, slot, 32 };
    word_t root = ROOT_CNODE;
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t deaf = badged(make(TYPE_NOTIFICATION, 0), RIGHT_RECEIVE, 1);
    word_t own = 0;

    SAME(irq_get(64, ROOT_CNODE, slot, 32), ERROR_RANGE);
    SAME(irq_get(~0u, ROOT_CNODE, slot, 32), ERROR_RANGE);
    for (word_t line = 0; line < 64; line++)
        own += irq_get(line, ROOT_CNODE, ROOT_TCB, 32) == ERROR_RANGE;
    SAME(own, 1); /* the kernel's */
    SAME(irq_get(5, ROOT_TCB, slot, 32), ERROR_INVALID_CAPABILITY);
    SAME(irq_get(5, ROOT_CNODE, ROOT_TCB, 32), ERROR_SLOT_OCCUPIED);
    SAME(irq_get(5, ROOT_CNODE, slot, 33), ERROR_RANGE);
    SAME(invoke(ROOT_IRQ_CONTROL, LABEL_IRQ_GET, words, 2, &root, 1), ERROR_TRUNCATED);
    SAME(invoke(ROOT_IRQ_CONTROL, LABEL_IRQ_GET, words, 3, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(ROOT_IRQ_CONTROL, 0, words, 3, &root, 1), ERROR_ILLEGAL_OPERATION);
    SAME(irq_get(5, ROOT_CNODE, slot, 32), ERROR_NONE);
    SAME(irq_set_notification(slot, endpoint), ERROR_INVALID_CAPABILITY);
    SAME(irq_set_notification(slot, deaf), ERROR_NO_RIGHT);
    SAME(invoke(slot, LABEL_IRQ_SET_NOTIFICATION, NULL, 0, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(slot, LABEL_TCB_RESUME, NULL, 0, NULL, 0), ERROR_ILLEGAL_OPERATION);
    return true;
}

const struct test sched_tests[] = {
    { urgent_first, "ready threads of eight priorities run in order of urgency" },
    { equal_in_turn, "threads of one priority run in order of becoming ready" },
    { priority_changes, "a thread in a ready queue moves when its priority changes" },
    { raise_at_most_to_own, "a thread cannot give a priority above its own" },
    { lowering_oneself_yields, "a thread that lowers itself below a ready one gives way" },
    { yield_alternates, "yield lets the other thread of the same priority run" },
    { yield_needs_nobody, "yield returns at once when nobody else is ready" },
    { waking_preempts, "a more urgent thread runs as soon as it is woken" },
    { signals_accumulate, "signals wait as the OR of their badges" },
    { waiters_in_turn, "each signal wakes one waiting thread" },
    { timer_wakes, "timer interrupts wake a waiting thread, once each, from idle" },
    { registers_survive, "registers of a user thread survive interrupts" },
    { flags_survive, "flags of a user thread survive interrupts" },
    { irq_errors, "interrupt control and handlers refuse wrong arguments" },
    { NULL, NULL },
};
