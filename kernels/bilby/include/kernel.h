/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's contents page: its states, its few global variables, and every
 * function that one file offers to another, grouped by file, callers first.
 *
 * Order of an operation: entry.S -> entries.c -> syscall.c -> decode_... (checks
 * everything, changes nothing) -> the change itself (cannot fail) -> leaves.
 */
#ifndef BILBY_KERNEL_H
#define BILBY_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include <board.h>
#include <flags.h>
#include <layout.h>
#include <limits.h>

/* tcb.regs: r0 to r14, and these. */
#define REG_SP 13
#define REG_LR 14
#define REG_PC 15
#define REG_CPSR 16
#define REG_BADGE 0   /* r0 */
#define REG_MESSAGE 1 /* r1 */
#define REG_WORDS 2   /* r2 to r5 */

/* cpsr of a user thread: the bits a user may choose (flags.h); the rest is fixed. */
#define CPSR_USER_MASK  MACHINE_CPSR_USER
#define CPSR_THUMB      0x00000020u
#define CPSR_USER_FIXED 0x00000150u /* imprecise aborts and FIQ masked, user mode */
#define CPSR_IDLE       0x0000015fu /* the same in system mode */

/* tcb.state */
enum {
    THREAD_INACTIVE,         /* 0, as in a cleared TCB: never started, or stopped; the idle thread */
    THREAD_RUNNING,          /* runnable: current, in a ready queue, or waiting for its budget */
    THREAD_BLOCKED_SEND,     /* queued on an endpoint, sending state */
    THREAD_BLOCKED_RECEIVE,  /* queued on an endpoint, receiving state */
    THREAD_BLOCKED_WAIT,     /* queued on a notification */
    THREAD_BLOCKED_REPLY,    /* its reply capability is in some thread's hands */
    THREAD_WITHOUT_CONTEXT,  /* it would run, but has no time; only where that is a capability */
};

/* endpoint.state */
enum { EP_IDLE, EP_SENDING, EP_RECEIVING, EP_CLOSED /* being emptied */ };

/* notification.signalled, besides 0 and 1 */
#define NOTIFICATION_CLOSED 2

struct ipc_buffer { word_t w[IPC_BUFFER_BYTES / 4]; };

/* ---- state ------------------------------------------------------------ */
/*
 * The current thread, never null after boot: in a register of its own while the kernel runs,
 * from entry.S on, and in memory.  Each read of memory might be of another thread for all that
 * the analysis knows; of a register it knows which bytes of the thread are in the cache.
 */
#ifdef CURRENT_IN_MEMORY
extern struct tcb *current_thread;
#define current_saved current_thread
#else
register struct tcb *current_thread __asm__("r9");
extern struct tcb *current_saved __asm__("current_thread");
#endif
extern struct tcb idle_thread;            /* lowest of all; in no queue */
extern struct slot irq_slots[IRQ_LINES];  /* notification of each line */
extern struct page_directory kernel_directory;

_Noreturn void kernel_panic(void);        /* entry.S */
_Noreturn void leave_to_interrupt(void);  /* entry.S */
_Noreturn void preempt(void);             /* preemption.c: called from preemption points */
void idle_loop(void);                     /* entry.S: where the idle thread begins */

/* ---- entries.c: called from entry.S ----------------------------------- */
void handle_syscall(word_t address, word_t message, word_t number);
void handle_interrupt(void);
void handle_undefined(void);
void handle_prefetch_abort(void);
void handle_data_abort(void);

/* ---- syscall.c, poll.c, fastpath.c ----------------------------------------- */
void syscall_invoke(word_t address, word_t message, word_t how);
void syscall_receive(word_t address, bool answered);
void syscall_poll(word_t address);
void reply_receive(word_t address);       /* one of reply_wait_*.c */
const struct cap *fastpath_call_applies(word_t address, word_t message);
void fastpath_call(const struct cap *cap, word_t message);
const struct cap *fastpath_reply_receive_applies(word_t address, word_t message);
void fastpath_reply_receive(const struct cap *cap, word_t message) AT_A_LINE;

/*
 * ---- decode: one per capability that can be invoked --------------------
 * The message of the current thread is in its registers and buffer; the
 * capabilities it sent have been looked up into struct invocation.  Each returns
 * an ERROR_ code and has changed nothing unless that is ERROR_NONE.  If it is
 * preempted it does not return: the object says how far the work has got.
 *
 * One that answers with words has put them into the caller's message, and returns their number,
 * shifted: a label has 20 bits.
 */
#define ANSWER_SHIFT 20
struct invocation {
    struct slot *slot;                  /* of the invoked capability */
    word_t label;
    word_t length;                      /* message words */
    word_t extra_count;
    struct slot *extra[EXTRA_CAPS_MAX]; /* slots of the capabilities sent */
};
word_t decode_untyped(const struct invocation *call);        /* untyped.c */
word_t decode_cnode(const struct invocation *call);          /* cnode.c */
word_t decode_tcb(const struct invocation *call);            /* tcb.c */
word_t stopped_read_registers(const struct tcb *thread);      /* tcb_stopped.c */
word_t stopped_unconfigure(struct tcb *thread);
word_t bound_bind(struct tcb *thread, const struct invocation *call); /* bound.c */
word_t bound_unbind(struct tcb *thread);
word_t decode_page_table(const struct invocation *call);     /* vspace */
word_t decode_frame(const struct invocation *call);          /* frame.c */
word_t decode_irq_control(const struct invocation *call);    /* irq_calls.c */
word_t decode_irq_handler(const struct invocation *call);    /* irq_calls.c */

/* ---- resolve.c, cspace.c: addresses to slots ------------------------------------- */
struct slot *cspace_resolve(const struct cap *root, word_t address, word_t bits);
struct slot *cspace_lookup(struct tcb *thread, word_t address);
word_t cspace_find(const struct cap *root, word_t index, word_t depth, struct slot **found);
word_t cspace_find_empty(const struct cap *root, word_t index, word_t depth,
                         struct slot **found);

/* ---- slot.c: the derivation list -------------------------------------- */
void slot_insert(struct slot *to, const struct cap *cap, struct slot *after,
                 bool revocable);
void slot_fill_row(struct slot *row, word_t count, const struct cap *first,
                   const struct cap *second);
void slot_insert_row(struct slot *row, word_t count, struct slot *after);
void slot_empty(struct slot *slot);
bool slot_is_last(const struct slot *slot);
bool slot_has_child(const struct slot *slot);
struct slot *slot_next(const struct slot *slot);
void slot_move(struct slot *to, struct slot *from);
void slot_rotate(struct slot *to, struct slot *pivot, struct slot *from);
void slot_leave_thread(struct slot *slot);
word_t slot_derive(const struct slot *from, struct cap *result);
void slot_copy(struct slot *to, const struct cap *cap, struct slot *from);

/* ---- delete.c, recycle.c ------------------------------------------------ */
void delete_slot(struct slot *slot, bool derived);
void delete_abandoned(void);
void delete_init(void);
word_t recycle_check(const struct cap *cap);
void recycle_reset(struct slot *slot);

/* ---- endpoint.c, notification.c, waiting.c, bound.c, reply.c, answer.c, fault.c, fault_message.c ---- */
#define SEND_BLOCKING 1u
#define SEND_CALL     2u /* and waits for the answer */
#define SEND_FAULT    4u /* the message is the sender's fault */
void endpoint_send(struct tcb *sender, struct endpoint *endpoint, word_t badge, word_t how,
                   bool may_grant);
void endpoint_receive(struct tcb *receiver, struct endpoint *endpoint, bool may_grant);
void endpoint_cancel(struct tcb *thread);
void endpoint_close(struct endpoint *endpoint);
void endpoint_recycle(struct endpoint *endpoint);
void notification_signal(struct notification *notification, word_t badge);
void notification_wait(struct tcb *waiter, struct notification *notification);
void notification_cancel(struct tcb *thread);
void notification_close(struct notification *notification);
void notification_recycle(struct notification *notification);
struct tcb *bound_dequeue(const struct notification *notification);
void bound_leave_thread(struct tcb *thread);
void bound_leave_notification(struct notification *notification);
void reply_expect(struct tcb *caller, struct tcb *server, bool may_grant);
word_t reply_send(struct tcb *server, struct slot *reply);
void reply_revoke(struct tcb *caller);
void fault_raise(struct tcb *thread, word_t fault, word_t address, word_t status);
void fault_write_message(struct tcb *thread, struct tcb *handler);
bool fault_read_answer(struct tcb *thread, struct tcb *handler);

/* ---- abort (one of abort_*.c and of abort_record_*.c) -------------------- */
void abort_claim_endpoint(struct endpoint *endpoint, bool recycle);
void abort_claim_notification(struct notification *notification, bool recycle);
void abort_endpoint(struct endpoint *endpoint);
void abort_notification(struct notification *notification);
void abort_badge(struct endpoint *endpoint, word_t badge);
void abort_mend(struct endpoint *endpoint, const struct tcb *leaving);
void abort_forget(struct tcb *thread);

/* ---- message_word.c, message.c --------------------------------------------------------- */
word_t message_word(const struct tcb *thread, word_t index);
/* The capabilities of a message, found before anything is changed. */
struct message_caps {
    word_t count;                        /* of those sent, as far as there are slots */
    struct slot *source[EXTRA_CAPS_MAX];
    struct slot *target;                 /* the receive slot; null if none, or not empty */
};
void message_find_caps(struct message_caps *caps, struct tcb *from, struct tcb *to,
                       bool may_grant);
void message_transfer(struct tcb *from, struct tcb *to, const struct endpoint *through,
                      const struct message_caps *caps);

/* ---- thread.c, call.c, switch.c, sched (one of sched_*.c) -------------------------------- */
void thread_init(struct tcb *thread);
void thread_set_pc(struct tcb *thread, word_t pc, word_t cpsr);
void thread_wake(struct tcb *thread);
void thread_set_priority(struct tcb *thread, word_t priority);
void thread_end_call(struct tcb *thread);
void thread_suspend(struct tcb *thread);
bool thread_abort_call(struct tcb *thread);
void thread_abort(struct tcb *thread);
void sched_wake(struct tcb *thread);
void sched_queue(struct tcb *thread);
void sched_yield(void);
void sched_expire(void);
void sched_remove(struct tcb *thread);
void sched_run(void);
void sched_hand_over(struct tcb *thread);
void sched_switch(struct tcb *thread);
void sched_urge_idle(void);
bool sched_calm_idle(void);
void sched_put_first(struct tcb *thread); /* only where time is a capability */

/* ---- create.c, clear (one of clear_*.c) --------------------------------- */
word_t create_size_bits(word_t type, word_t size_bits);
void create_clear_chunk(word_t base, word_t bytes);
void create_clean_chunk(word_t base, word_t bytes);
void create_frame(struct cap *cap, word_t physical, word_t size);
void clear_before(struct slot *untyped);
void clear_inside(word_t base, word_t bytes);
void create_cap(struct cap *cap, word_t type, word_t base, word_t size_bits);

/* ---- vspace (one of vspace_*.c), asid.c --------------------------------- */
word_t vspace_find(struct page_directory *directory, word_t address, word_t size,
                   word_t **entry);
void vspace_write(struct slot *frame, word_t *entry, word_t descriptor, word_t size);
void vspace_map_table(struct slot *table, word_t *entry);
void vspace_moved(struct slot *slot, const struct slot *from);
void vspace_forget_mapping(struct cap *frame);
void vspace_unmap_frame(struct slot *frame);
void vspace_unmap_table(struct slot *table);
void vspace_delete_table(struct slot *table);
void vspace_delete_directory(struct slot *directory);
void asid_switch(struct page_directory *directory);
void asid_flush(const struct page_directory *directory);
void asid_release(struct page_directory *directory);

/* ---- irq.c ---------------------------------------------------------------- */
bool irq_is_issued(word_t irq);
void irq_issue(word_t irq);
void irq_release(word_t irq);

/* ---- window addresses ---------------------------------------------------- */
static inline word_t to_physical(word_t window)
{
    return window - WINDOW_BASE + RAM_BASE;
}
static inline word_t to_window(word_t physical)
{
    return physical - RAM_BASE + WINDOW_BASE;
}

/* The same thread or slot, of which that can be seen; not for null. */
static inline struct tcb *tcb_at(const struct tcb *thread)
{
    struct tcb *same = (struct tcb *)in_window((word_t)thread, sizeof(struct tcb));

    NEVER_NULL(same);
    return same;
}

/* The thread's call fails.  Nothing else says so, but an invocation, which answers with an error code. */
static inline void thread_fail_call(struct tcb *thread, word_t error)
{
    thread->regs[REG_BADGE] = SYSCALL_FAILED | error;
    thread->regs[REG_MESSAGE] = message_make(0, 0, 0, error);
}

/* The thread makes the call that it is in again: the pc goes back onto the SVC. */
static inline void thread_call_again(struct tcb *thread)
{
    word_t cpsr = thread->regs[REG_CPSR];

    thread->regs[REG_PC] -= cpsr & CPSR_THUMB ? 2 : 4;
    thread->regs[REG_CPSR] = machine_cpsr_of_svc(cpsr);
}

static inline struct slot *slot_at(const struct slot *slot)
{
    return (struct slot *)in_window((word_t)slot, sizeof(struct slot));
}

static inline bool slot_is_empty(const struct slot *slot)
{
    return cap_type(&slot->cap) == CAP_NULL;
}

/* A thread has containers to empty, or anything to delete. */
static inline bool delete_has_graves(const struct tcb *owner)
{
    return remains_cap_next(&owner->graves) != (word_t)&owner->graves;
}

static inline bool delete_has_left(const struct tcb *owner)
{
    return !slot_is_empty(&owner->limbo) || delete_has_graves(owner);
}

/* A deletion has begun, and is not over. */
static inline bool delete_is_left(void)
{
    return idle_thread.deleting_next != &idle_thread || delete_has_left(&idle_thread);
}

/* At a tick: abandoned deletions have their turn. */
static inline void delete_take_turn(void)
{
    if (!delete_is_left())
        return;
    idle_thread.regs[REG_PC] = (word_t)idle_loop;
    sched_urge_idle();
}

/* The first of the THREAD_SLOTS slots of a thread (timing.h). */
static inline struct slot *thread_slots(struct tcb *thread)
{
    return &thread->cspace;
}

/* Sections of code and data used once, before the first thread. */
#define BOOT_CODE __attribute__((section(".boot.text"), noinline))
#define BOOT_CONST __attribute__((section(".boot.rodata")))

#endif
