/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executable invariants of the kernel's data, checked between operations in
 * builds made for it: the host build, and BOARD-PRESET-check-N under QEMU.
 *
 * The kinds are from "Improving interrupt response time in a verifiable protected microkernel"
 * (EuroSys 2012), section 2.2; docs: kernels/bilby/verification/check.
 */
#ifndef CHECK_INVARIANTS_H
#define CHECK_INVARIANTS_H

#include <kernel.h>

/* Everything that can be reached from the kernel's variables. */
#define UNIVERSE_SLOTS   262144u
#define UNIVERSE_OBJECTS 32768u

struct list { word_t count; word_t at[UNIVERSE_OBJECTS]; };

struct universe {
    word_t slot_count, known_count;
    struct slot *slot[UNIVERSE_SLOTS], *known[UNIVERSE_SLOTS];
    struct list cnodes, threads, endpoints, notifications, tables, directories, contexts;
    unsigned char slot_seen[RAM_BYTES / 16 / 8];
    unsigned char object_seen[RAM_BYTES / 16 / 8];
    unsigned char family_seen[RAM_BYTES / 16 / 8];
    unsigned char descriptor_seen[RAM_BYTES / 4 / 8];
};

extern struct universe *const universe;

void universe_find(void);
void universe_know(void);   /* the objects found last exist from now on while not empty */
void universe_forget(void); /* nothing is known */
/* The host build's: a page of zeros that nobody ever wrote to. */
bool memory_is_blank(word_t page) __attribute__((weak));

bool universe_has_slot(const void *slot);
bool universe_has_object(const void *object);

/* The found objects, for spaces_*.c to follow. */
void universe_add_slot(struct slot *slot);
void universe_add_table(struct page_table *table);
void universe_add_directory(struct page_directory *directory);
void universe_add_thread(struct tcb *thread);
bool universe_add_context(const void *context); /* true the first time */

/* One of spaces_*.c: further reachable objects, and objects that only it has. */
void spaces_reach(void);
void spaces_reach_from_table(const struct page_table *table);
void spaces_reach_from_directory(const struct page_directory *directory);
void spaces_reach_from_frame(const struct cap *frame);
word_t spaces_object_bytes(const struct cap *cap);

/*
 * One ready queue for each priority; where time is a capability, for each criticality, too: then
 * a queue's index is criticality * PRIORITIES + priority.
 */
#ifdef TIME_CONTEXTS
#define READY_QUEUES (CRITICALITIES * PRIORITIES)
#else
#define READY_QUEUES PRIORITIES
#endif
#define READY_QUEUE_WORDS (READY_QUEUES / PRIORITIES) /* words of bits for words of bits */

/* One of time_*.c: contexts, and the scheduler's use of them. */
void time_reach(void);
void time_reach_from_thread(const struct tcb *thread);
void time_reach_from_cap(const struct cap *cap);
void time_check_endpoint(const struct endpoint *endpoint);
void time_check_notification(const struct notification *notification);
word_t time_object_bytes(const struct cap *cap);
word_t time_queue_of(const struct tcb *thread);       /* the index of its ready queue */
word_t time_urgency(const struct tcb *thread);        /* the scheduler's order */
bool time_is_waited_for(const struct tcb *thread);    /* runnable, but it has no time now */
bool time_may_be_queued(const struct tcb *thread);
bool time_can_take_signal(const struct notification *notification, const struct tcb *thread);
bool time_has_somebody_to_deal_with(void);            /* the idle thread runs before whom it is to stop */

/* An invariant, by its name, does not hold; the address says where. */
_Noreturn void check_failed(const char *invariant, word_t address);

void check_invariants(void);
void check_lists(void);      /* well-formed data structures */
void check_memory(void);     /* alignment and disjointness of objects */
void check_devices(void);    /* regions of devices, and frames of them */
void check_scheduler(void);  /* the scheduler's assumptions */
void check_waiting(void);    /* endpoints, notifications, replies */
void check_spaces(void);     /* address spaces (one of spaces_*.c) */
void check_caps(void);       /* objects and the capabilities to them */
void check_time(void);       /* contexts (one of time_*.c) */
void check_deletion(void);   /* step-by-step deletion, clearing and aborts */
void check_call_is_over(const struct tcb *thread);

/* One of lookups_*.c: the lookups that threads keep. */
void check_lookups(void);
void check_no_lookups(const struct tcb *thread);
bool is_kept_lookup(const struct list *threads, word_t address);
void lookups_unmark(void);
word_t lookups_kept(void); /* by one call, at most: each is a step of its own */

static inline struct slot *link_to(word_t link)
{
    return (struct slot *)(link & ~0xfu);
}

/* Index of the next word that is not zero; "count" if none.  Most of a table is zero. */
static inline word_t next_used(const word_t *word, word_t i, word_t count)
{
    while (i < count && word[i] == 0) {
        const word_t *w = &word[i];
        bool eight = i + 8 <= count
            && (w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) == 0;

        i += eight ? 8 : 1;
    }
    return i;
}

static inline void require(bool holds, const char *invariant, const void *address)
{
    if (!holds)
        check_failed(invariant, (word_t)address);
}

#endif
