/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: deleting, revoking, recycling, moving; the woken threads, the freed memory. */
#include "tests.h"

#define DATA_RIGHTS (RIGHT_READ | RIGHT_WRITE)
#define SPARE_PAGE  0x001f3000u
#define SPARE_LARGE 0x001e0000u
#define ABORTED (SYSCALL_FAILED | ERROR_ABORTED)

static word_t delete(word_t slot)
{
    return cnode_delete(ROOT_CNODE, slot, 32);
}

static word_t revoke(word_t slot)
{
    return cnode_revoke(ROOT_CNODE, slot, 32);
}

static bool is_empty(word_t slot)
{
    return cnode_copy(ROOT_CNODE, new_slots(1), 32, ROOT_CNODE, slot, 32, RIGHTS_ALL)
        == ERROR_INVALID_CAPABILITY;
}

/* ---- moving ------------------------------------------------------------------ */

static bool moves(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t slot = new_slots(4);

    SAME(cnode_move(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, 32), 0);
    SAME(is_empty(endpoint), true);
    SAME(send(SYS_NB_SEND, slot, 0), 0);
    SAME(cnode_move(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, endpoint, 32), ERROR_INVALID_CAPABILITY);
    SAME(cnode_move(ROOT_CNODE, slot, 32, ROOT_CNODE, slot, 32), ERROR_SLOT_OCCUPIED);
    SAME(cnode_copy(ROOT_CNODE, endpoint, 32, ROOT_CNODE, slot, 32, RIGHTS_ALL), 0);
    SAME(revoke(slot), 0); /* a move keeps later derived capabilities */
    SAME(is_empty(endpoint), true);
    return true;
}

static bool mutates(void)
{
    word_t cnode = make(TYPE_CNODE, 4);
    word_t slot = new_slots(3);

    SAME(cnode_mutate(ROOT_CNODE, slot, 32, ROOT_CNODE, cnode, 32, guard_data_make(28, 5)), 0);
    SAME(is_empty(cnode), true);
    SAME(cnode_copy(slot, 0x53, 32, ROOT_CNODE, slot, 32, RIGHTS_ALL), 0);
    SAME(cnode_mutate(ROOT_CNODE, cnode, 32, ROOT_CNODE, slot, 32, guard_data_make(29, 0)),
         ERROR_RANGE);
    SAME(cnode_mutate(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, make(TYPE_ENDPOINT, 0), 32, 3),
         ERROR_ILLEGAL_OPERATION);
    return true;
}

static bool rotates(void)
{
    word_t a = badged(make(TYPE_ENDPOINT, 0), RIGHTS_ALL, 1);
    word_t n = make(TYPE_NOTIFICATION, 0);
    word_t free = new_slots(1);

    SAME(cnode_rotate(ROOT_CNODE, free, a, n), 0); /* a to free, n to a */
    SAME(is_empty(n), true);
    SAME(send(SYS_SEND, a, 0), 0); /* a signal: does not block */
    SAME(receive(a).badge, 0);
    SAME(cnode_rotate(ROOT_CNODE, a, free, a), 0); /* they change places */
    SAME(send(SYS_SEND, free, 0), 0);
    SAME(send(SYS_NB_SEND, a, 0), 0);
    SAME(cnode_rotate(ROOT_CNODE, a, a, free), ERROR_INVALID_ARGUMENT);
    SAME(cnode_rotate(ROOT_CNODE, a, free, free), ERROR_INVALID_ARGUMENT);
    SAME(cnode_rotate(ROOT_CNODE, report, a, free), ERROR_SLOT_OCCUPIED);
    SAME(cnode_rotate(ROOT_CNODE, n, new_slots(1), free), ERROR_INVALID_CAPABILITY);
    return true;
}

/* A mapped frame that moved can still be unmapped, and its page be used again. */
static bool mapping_follows_its_slot(void)
{
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t slot = new_slots(1);

    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), 0);
    *(volatile word_t *)SPARE_PAGE = 7;
    SAME(cnode_move(ROOT_CNODE, slot, 32, ROOT_CNODE, frame, 32), 0);
    SAME(*(volatile word_t *)SPARE_PAGE, 7);
    SAME(delete(slot), 0);
    frame = make(TYPE_FRAME_4K, 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), 0);
    SAME(*(volatile word_t *)SPARE_PAGE, 0);
    SAME(delete(frame), 0);
    return true;
}

/* ---- endpoints and notifications --------------------------------------------- */

static void sends_in_vain(word_t value)
{
    tell(send(SYS_SEND, CHILD_ENDPOINT, value));
    rest();
}

static void calls_in_vain(word_t value)
{
    tell(call(CHILD_ENDPOINT, 0, value).badge);
    rest();
}

static void receives_in_vain(word_t unused)
{
    (void)unused;
    tell(receive(CHILD_ENDPOINT).badge);
    rest();
}

static bool deleting_endpoint_wakes(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t copy;
    struct child sender = run_child(sends_in_vain, 1, 10, endpoint, 5);
    struct child caller = run_child(calls_in_vain, 1, 9, endpoint, 0);

    let_others_run();
    copy = copy_of(endpoint);
    SAME(delete(endpoint), 0); /* not the last: the children have theirs */
    SAME(delete(copy), 0);
    SAME(cnode_delete(sender.cnode, CHILD_ENDPOINT, 32), 0);
    SAME(cnode_delete(caller.cnode, CHILD_ENDPOINT, 32), 0); /* the last */
    SAME(wait_report(), ABORTED);
    SAME(wait_report(), ABORTED);
    return true;
}

static bool revoking_wakes_receivers(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t notification = make(TYPE_NOTIFICATION, 0);

    for (word_t i = 0; i < 3; i++)
        run_child(receives_in_vain, 0, 10 + i, endpoint, 0);
    run_child(receives_in_vain, 0, 9, notification, 0);
    let_others_run();
    SAME(revoke(endpoint), 0);
    SAME(delete(endpoint), 0);
    for (word_t i = 0; i < 3; i++)
        SAME(wait_report(), ABORTED);
    SAME(delete(notification), 0); /* not the last */
    SAME(send(SYS_SEND, park, 0) == 0, true);
    return true;
}

static bool deleting_notification_wakes(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);

    run_child(receives_in_vain, 0, 10, notification, 0);
    run_child(receives_in_vain, 0, 10, notification, 0);
    let_others_run();
    SAME(revoke(notification), 0);
    SAME(delete(notification), 0);
    SAME(wait_report(), ABORTED);
    SAME(wait_report(), ABORTED);
    return true;
}

static void faults(word_t unused)
{
    (void)unused;
    __asm__ volatile(".inst 0xe7f000f0");
    tell(1);
}

/* Nobody will ever handle that fault: the thread stays where it is. */
static bool faulting_thread_stays_stopped(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = make_child(faults, 0, 10, CHILD_ENDPOINT);

    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&child);
    let_others_run();
    SAME(revoke(endpoint), 0);
    SAME(delete(endpoint), 0);
    run_child(tells, 4, 5, 0, 0);
    SAME(wait_report(), 4);
    return true;
}

static bool badges_are_aborted_alone(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t three = badged(endpoint, RIGHTS_ALL, 3);
    word_t four = badged(endpoint, RIGHTS_ALL, 4);
    struct message m;

    run_child(sends_in_vain, 30, 14, three, 0);
    run_child(sends_in_vain, 40, 13, four, 0);
    run_child(sends_in_vain, 31, 12, three, 0);
    run_child(sends_in_vain, 50, 11, endpoint, 0);
    let_others_run();
    SAME(cnode_recycle(ROOT_CNODE, three, 32), 0);
    SAME(wait_report(), ABORTED);
    SAME(wait_report(), ABORTED);
    m = receive(endpoint);
    SAME(m.badge, 4);
    SAME(m.w[0], 40);
    m = receive(endpoint);
    SAME(m.badge, 0);
    SAME(m.w[0], 50);
    SAME(wait_report(), 0);
    SAME(wait_report(), 0);
    SAME(is_empty(three), false);
    return true;
}

static bool recycled_endpoint_is_usable(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t notification = make(TYPE_NOTIFICATION, 0);
    word_t less = new_slots(1);

    run_child(receives_in_vain, 0, 10, endpoint, 0);
    let_others_run();
    SAME(cnode_recycle(ROOT_CNODE, endpoint, 32), 0);
    SAME(wait_report(), ABORTED);
    run_child(sends_in_vain, 6, 10, endpoint, 0);
    SAME(receive(endpoint).w[0], 6);
    SAME(wait_report(), 0);
    SAME(send(SYS_SEND, notification, 0), 0);
    SAME(cnode_recycle(ROOT_CNODE, notification, 32), 0); /* nothing is pending now */
    run_child(receives_in_vain, 0, 10, notification, 0);
    let_others_run();
    SAME(send(SYS_SEND, notification, 0), 0);
    SAME(wait_report(), 0);
    SAME(cnode_copy(ROOT_CNODE, less, 32, ROOT_CNODE, endpoint, 32, RIGHT_SEND), 0);
    SAME(cnode_recycle(ROOT_CNODE, less, 32), ERROR_NO_RIGHT);
    SAME(cnode_recycle(ROOT_CNODE, ROOT_CNODE, 32), ERROR_ILLEGAL_OPERATION);
    return true;
}

static bool badge_families(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t three = badged(endpoint, RIGHTS_ALL, 3);
    word_t copy = copy_of(three);
    word_t other = badged(endpoint, RIGHTS_ALL, 3); /* another family of the same badge */

    SAME(revoke(copy), 0); /* a copy has nothing under it */
    SAME(is_empty(three), false);
    SAME(revoke(three), 0);
    SAME(is_empty(copy), true);
    SAME(is_empty(other), false);
    SAME(revoke(endpoint), 0);
    SAME(is_empty(three), true);
    SAME(is_empty(other), true);
    SAME(is_empty(endpoint), false);
    SAME(delete(endpoint), 0);
    SAME(delete(endpoint), 0); /* an empty slot */
    return true;
}

/* ---- frames and address spaces ------------------------------------------------- */

static bool frames_leave_no_trace(void)
{
    word_t first = make(TYPE_FRAME_4K, 0);
    word_t second = make(TYPE_FRAME_4K, 0);
    volatile word_t *page = (volatile word_t *)SPARE_PAGE;

    SAME(frame_map(first, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), 0);
    *page = 1;
    SAME(frame_unmap(first), 0);
    SAME(frame_unmap(first), 0);
    SAME(frame_map(second, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), 0);
    SAME(*page, 0); /* not the value in the TLB */
    *page = 2;
    SAME(delete(second), 0);
    SAME(frame_map(first, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), 0);
    SAME(*page, 1);
    SAME(delete(first), 0);
    return true;
}

static bool large_frames_are_unmapped_whole(void)
{
    word_t large = make(TYPE_FRAME_64K, 0);
    word_t small = make(TYPE_FRAME_4K, 0);

    SAME(frame_map(large, ROOT_PAGE_DIRECTORY, SPARE_LARGE, DATA_RIGHTS, 0), 0);
    SAME(frame_map(small, ROOT_PAGE_DIRECTORY, SPARE_LARGE + 0xf000, DATA_RIGHTS, 0),
         ERROR_ALREADY_MAPPED);
    SAME(delete(large), 0);
    SAME(frame_map(small, ROOT_PAGE_DIRECTORY, SPARE_LARGE + 0xf000, DATA_RIGHTS, 0), 0);
    SAME(*(volatile word_t *)(SPARE_LARGE + 0xf000), 0);
    SAME(delete(small), 0);
    return true;
}

static void one_then_long(word_t unused)
{
    word_t length;

    (void)unused;
    tell(0);
    length = message_length(receive(CHILD_ENDPOINT).info);
    tell(length);
    rest();
}

/* A thread whose buffer's frame is revoked has only registers for messages. */
static bool buffer_is_forgotten(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    struct child child = make_bare_child(one_then_long, 0, 10);
    word_t tcb = make(TYPE_TCB, 0);
    struct message m = { endpoint, message_make(20, 0, 0, 0), { 1, 2, 3, 4 } };

    SAME(tcb_configure(tcb, 0, child.cnode, child.directory, frame, 512), 0);
    SAME(tcb_write_registers(tcb, (word_t)one_then_long, (word_t)0x001c0000, 0, 0), 0);
    SAME(delete(child.tcb), 0);
    child.tcb = tcb;
    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    SAME(revoke(frame), 0);
    SAME(tcb_set_priority(tcb, 10), 0);
    give_time(tcb);
    SAME(tcb_resume(tcb), 0);
    SAME(delete(frame), 0);
    (void)m;
    return true;
}

/* ---- containers ------------------------------------------------------------------ */

/* All of an untyped region can be used again: nothing of it is left anywhere. */
static bool is_free_again(word_t untyped, word_t bits)
{
    word_t slot = new_slots(1);

    SAME(untyped_retype(untyped, TYPE_UNTYPED, bits, ROOT_CNODE, 0, 0, slot, 1), 0);
    SAME(delete(slot), 0);
    return true;
}

static word_t make_from(word_t untyped, word_t type, word_t bits)
{
    word_t slot = new_slots(1);

    require(untyped_retype(untyped, type, bits, ROOT_CNODE, 0, 0, slot, 1), "retype from");
    return slot;
}

static bool cnode_goes_with_what_it_holds(void)
{
    word_t untyped = make(TYPE_UNTYPED, 16);
    word_t cnode = make_from(untyped, TYPE_CNODE, 5);
    word_t endpoint = make_from(untyped, TYPE_ENDPOINT, 0);

    run_child(receives_in_vain, 0, 10, endpoint, 0);
    let_others_run();
    SAME(cnode_copy(cnode, 7, 5, ROOT_CNODE, endpoint, 32, RIGHTS_ALL), 0);
    SAME(cnode_move(cnode, 31, 5, ROOT_CNODE, endpoint, 32), 0);
    SAME(revoke(untyped), 0);
    SAME(wait_report(), ABORTED);
    SAME(is_empty(cnode), true);
    return is_free_again(untyped, 16);
}

static bool cycles_end(void)
{
    word_t untyped = make(TYPE_UNTYPED, 16);
    word_t a = make_from(untyped, TYPE_CNODE, 3);
    word_t b = make_from(untyped, TYPE_CNODE, 3);
    word_t c = make_from(untyped, TYPE_CNODE, 3);
    word_t d = make_from(untyped, TYPE_CNODE, 3);

    /* c holds its own only capability, in its first slot; d in another */
    SAME(cnode_move(c, 0, 3, ROOT_CNODE, c, 32), 0);
    SAME(cnode_move(d, 5, 3, ROOT_CNODE, d, 32), 0);
    /* a and b hold each other's */
    SAME(cnode_copy(a, 0, 3, ROOT_CNODE, b, 32, RIGHTS_ALL), 0);
    SAME(cnode_copy(a, 3, 3, ROOT_CNODE, a, 32, RIGHTS_ALL), 0);
    SAME(cnode_move(b, 0, 3, ROOT_CNODE, a, 32), 0);
    SAME(delete(b), 0);
    SAME(revoke(untyped), 0);
    return is_free_again(untyped, 16);
}

/* Each holds the only capability of the next, in its first or its last slot. */
static bool chains_end(void)
{
    word_t untyped = make(TYPE_UNTYPED, 16);
    word_t first = make_from(untyped, TYPE_CNODE, 1);
    word_t last = first;

    for (word_t i = 0; i < 200; i++) {
        word_t next = make_from(untyped, TYPE_CNODE, 1);
        word_t at = new_slots(1);

        SAME(cnode_copy(ROOT_CNODE, at, 32, ROOT_CNODE, next, 32, RIGHTS_ALL), 0);
        SAME(cnode_move(last, i & 1, 1, ROOT_CNODE, next, 32), 0);
        if (last != first)
            SAME(delete(last), 0);
        last = at;
    }
    SAME(delete(last), 0);
    SAME(delete(first), 0); /* and so all of them */
    return is_free_again(untyped, 16);
}

static bool untyped_inside_its_own_memory(void)
{
    word_t untyped = make(TYPE_UNTYPED, 16);
    word_t small = make_from(untyped, TYPE_UNTYPED, 14);
    word_t cnode = make_from(small, TYPE_CNODE, 4);

    SAME(cnode_move(cnode, 0, 4, ROOT_CNODE, small, 32), 0);
    SAME(cnode_revoke(cnode, 0, 4), 0); /* deletes the CNode, and so the capability itself */
    SAME(is_empty(cnode), true);
    return is_free_again(untyped, 16);
}

/* ---- threads --------------------------------------------------------------------- */

static bool thread_goes_with_its_slots(void)
{
    word_t untyped = make(TYPE_UNTYPED, 12);
    word_t tcb = make_from(untyped, TYPE_TCB, 0);
    word_t cnode = make_from(untyped, TYPE_CNODE, 2);

    SAME(tcb_configure(tcb, 0, cnode, ROOT_PAGE_DIRECTORY, 0, 0), 0);
    SAME(tcb_write_registers(tcb, (word_t)tells, 0, 0, 0), 0);
    give_time(tcb);
    SAME(tcb_resume(tcb), 0);
    SAME(delete(cnode), 0); /* the thread has it too */
    SAME(delete(tcb), 0);
    return is_free_again(untyped, 12);
}

/* Deletes the slot of its own space that the argument names, and says so if it can. */
static void suicide(word_t slot)
{
    word_t words[] = { slot, 32 };
    word_t error = invoke(CHILD_CNODE, LABEL_CNODE_DELETE, words, 2, NULL, 0);

    tell(0x100 + error);
    rest();
}

static bool thread_deletes_itself(void)
{
    word_t untyped = make(TYPE_UNTYPED, 10);
    word_t tcb = make_from(untyped, TYPE_TCB, 0);
    struct child child = make_child(suicide, CHILD_OTHER, 10, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);

    SAME(delete(child.tcb), 0);
    SAME(frame_map(frame, child.directory, 0x001f0000, DATA_RIGHTS, 0), 0);
    SAME(tcb_configure(tcb, 0, child.cnode, child.directory, frame, 0), 0);
    SAME(tcb_write_registers(tcb, (word_t)tells, 0x001f1000, 0, CHILD_OTHER), 0);
    SAME(tcb_set_priority(tcb, 10), 0);
    SAME(cnode_move(child.cnode, CHILD_OTHER, 32, ROOT_CNODE, tcb, 32), 0);
    SAME(revoke(untyped), 0);
    run_child(tells, 4, 5, 0, 0);
    SAME(wait_report(), 4);
    return is_free_again(untyped, 10);
}

/* The only capability to a running thread is in its own space, and it deletes that. */
static bool thread_deletes_its_own_tcb(void)
{
    struct child child = make_child(suicide, CHILD_OTHER, 10, 0);

    SAME(cnode_copy(child.cnode, CHILD_OTHER, 32, ROOT_CNODE, child.tcb, 32, RIGHTS_ALL), 0);
    SAME(tcb_resume(child.tcb), 0);
    SAME(delete(child.tcb), 0);
    run_child(tells, 4, 5, 0, 0);
    SAME(wait_report(), 4); /* the child said nothing */
    return true;
}

static void revokes_own(word_t unused)
{
    word_t words[] = { CHILD_OTHER, 32 };

    (void)unused;
    invoke(CHILD_CNODE, LABEL_CNODE_REVOKE, words, 2, NULL, 0);
    tell(1);
    rest();
}

static void revokes_all(word_t unused)
{
    word_t words[] = { CHILD_OTHER, 32 };

    (void)unused;
    invoke(CHILD_CNODE, LABEL_CNODE_REVOKE, words, 2, NULL, 0);
    tell(1);
    __asm__ volatile(".inst 0xe7f000f0"); /* nobody handles that: it stops */
}

/* Its address space, then its capability space, are revoked by the thread itself. */
static bool thread_revokes_its_spaces(void)
{
    struct child child = make_child(revokes_own, 0, 10, 0);

    SAME(cnode_move(child.cnode, CHILD_OTHER, 32, ROOT_CNODE, child.directory, 32), 0);
    start(&child);
    SAME(wait_report(), 1); /* it runs on where it is, until another runs */
    run_child(tells, 4, 5, 0, 0);
    SAME(wait_report(), 4);
    child = make_child(revokes_all, 0, 10, 0);
    /* The original stands before the copy with the guard; the thread has another. */
    SAME(cnode_move(child.cnode, CHILD_OTHER, 32, ROOT_CNODE, child.cnode - 1, 32), 0);
    start(&child);
    run_child(tells, 5, 9, 0, 0);
    SAME(wait_report(), 5); /* no capability, no report */
    SAME(is_empty(child.cnode), true);
    return true;
}

static void counts(word_t unused)
{
    (void)unused;
    for (;;) {
        tell(1);
        receive(CHILD_ENDPOINT);
    }
}

static bool suspended_thread_stops(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = run_child(counts, 0, 10, endpoint, 0);

    SAME(wait_report(), 1);
    let_others_run();
    SAME(tcb_suspend(child.tcb), 0); /* it waited: not any more */
    SAME(send(SYS_NB_SEND, endpoint, 0), 0);
    run_child(tells, 4, 5, 0, 0);
    SAME(wait_report(), 4);
    SAME(tcb_resume(child.tcb), 0);
    SAME(wait_report(), 1);
    SAME(cnode_recycle(ROOT_CNODE, child.tcb, 32), 0);
    run_child(tells, 6, 5, 0, 0);
    SAME(wait_report(), 6);
    return true;
}

static void serves_once(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    tell(8);
    send(SYS_REPLY, 0, 1);
    tell(9);
    rest();
}

/* A caller that is deleted takes the right to answer it along. */
static bool caller_goes_with_its_reply(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child caller;

    run_child(serves_once, 0, 5, endpoint, 0);
    caller = run_child(calls_in_vain, 0, 10, endpoint, 0);
    SAME(wait_report(), 8);
    SAME(delete(caller.tcb), 0);
    SAME(wait_report(), 9);
    return true;
}

/* ---- interrupts, memory -------------------------------------------------------------- */

static bool handler_can_be_given_again(void)
{
    word_t handler = new_slots(2);
    word_t notification = make(TYPE_NOTIFICATION, 0);

    SAME(irq_get(9, ROOT_CNODE, handler, 32), 0);
    SAME(irq_set_notification(handler, notification), 0);
    SAME(irq_clear_notification(handler), 0);
    SAME(irq_set_notification(handler, notification), 0);
    SAME(delete(notification), 0); /* the line has it too */
    SAME(irq_get(9, ROOT_CNODE, handler + 1, 32), ERROR_ILLEGAL_OPERATION);
    SAME(delete(handler), 0);
    SAME(irq_get(9, ROOT_CNODE, handler + 1, 32), 0);
    SAME(irq_set_notification(handler + 1, make(TYPE_NOTIFICATION, 0)), 0);
    return true;
}

static bool memory_is_cleared_again(void)
{
    word_t untyped = make(TYPE_UNTYPED, 17);
    volatile word_t *memory = (volatile word_t *)SPARE_LARGE;
    word_t frame;

    for (word_t round = 0; round < 3; round++) {
        frame = make_from(untyped, TYPE_FRAME_64K, 0);
        SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, SPARE_LARGE, DATA_RIGHTS, 0), 0);
        for (word_t i = 0; i < 0x4000; i++) {
            if (memory[i] != 0)
                SAME(memory[i], 0);
            memory[i] = 0xffffffff - i;
        }
        SAME(revoke(untyped), 0);
    }
    return is_free_again(untyped, 17);
}

static bool large_frames_can_be_made(void)
{
    word_t frame = make(TYPE_FRAME_16M, 0);
    volatile word_t *memory = (volatile word_t *)0x50000000;

    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, (word_t)memory, DATA_RIGHTS, 0), 0);
    for (word_t i = 0; i < 1u << 22; i += 1u << 10)
        SAME(memory[i], 0);
    SAME(delete(frame), 0);
    frame = make(TYPE_FRAME_1M, 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, (word_t)memory, DATA_RIGHTS, 0), 0);
    SAME(memory[77], 0);
    SAME(delete(frame), 0);
    return true;
}

const struct test delete_tests[] = {
    { moves, "move takes a capability and what was derived from it along" },
    { mutates, "mutate gives a moved CNode capability another guard" },
    { rotates, "rotate moves two capabilities at once, or makes them change places" },
    { mapping_follows_its_slot, "a mapped frame's capability can be moved and then deleted" },
    { deleting_endpoint_wakes, "deleting an endpoint's last capability wakes who waits on it" },
    { revoking_wakes_receivers, "revoking and deleting an endpoint wakes its receivers" },
    { deleting_notification_wakes, "deleting a notification wakes who waits on it" },
    { faulting_thread_stays_stopped, "a fault whose handler is deleted leaves the thread stopped" },
    { badges_are_aborted_alone, "recycling a badged capability wakes the senders with its badge" },
    { recycled_endpoint_is_usable, "a recycled endpoint or notification is as good as new" },
    { badge_families, "revoke deletes what was derived, badge by badge" },
    { frames_leave_no_trace, "a page that was unmapped is gone from the TLB too" },
    { large_frames_are_unmapped_whole, "a 64 KiB frame is unmapped whole" },
    { buffer_is_forgotten, "a thread whose message buffer is revoked goes on without" },
    { cnode_goes_with_what_it_holds, "a CNode is deleted with what only it holds" },
    { cycles_end, "CNodes that hold themselves or each other are deleted" },
    { chains_end, "a chain of 200 CNodes is deleted with its first" },
    { untyped_inside_its_own_memory, "a capability is revoked that stands in what it revokes" },
    { thread_goes_with_its_slots, "a thread is deleted with its capability space" },
    { thread_deletes_itself, "a thread that holds its own only capability is deleted" },
    { thread_deletes_its_own_tcb, "a thread deletes its own last capability and is gone" },
    { thread_revokes_its_spaces, "a thread revokes its own address and capability spaces" },
    { suspended_thread_stops, "a suspended thread waits for nothing, and can be resumed" },
    { caller_goes_with_its_reply, "a deleted caller takes the right to answer it along" },
    { handler_can_be_given_again, "an interrupt handler can be deleted and made again" },
    { memory_is_cleared_again, "memory that is revoked is clear when it is used again" },
    { large_frames_can_be_made, "frames of 1 MiB and 16 MiB can be made" },
    { NULL, NULL },
};
