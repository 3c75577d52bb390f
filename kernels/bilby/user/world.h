/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the tests: slots, objects, and children.  A child is a thread with an address space
 * and a capability space of its own.  It runs the program's text on a private copy of its data, so
 * that it shares nothing but endpoints.
 */
#ifndef USER_WORLD_H
#define USER_WORLD_H

#include "bilby.h"

/* A child's slots: its CNode has 256, and 24 bits of guard. */
#define CHILD_RADIX   8
#define CHILD_REPORT  1 /* endpoint of the first thread */
#define CHILD_ENDPOINT 2 /* the endpoint of the test */
#define CHILD_CNODE   3
#define CHILD_PARK    4 /* endpoint on which nobody sends */
#define CHILD_OTHER   5
#define CHILD_POOL    15 /* where address spaces have numbers: the first thread's pool */
#define CHILD_FREE    16

#define SCRATCH_BASE  0x10000000u /* where the first thread maps frames to look at */

struct child {
    word_t tcb, cnode, directory, table;
    word_t context; /* where time is a capability: bound to it, and shared by turns; else 0 */
};

extern const struct boot_info *info;
extern word_t report;   /* endpoint on which children report */
extern word_t park;
extern word_t asid_pool; /* where address spaces have numbers: new ones have theirs of it */

void world_init(const struct boot_info *boot_info);
void world_renew(void);     /* a report endpoint that older children do not have */
word_t new_slots(word_t count);
word_t make(word_t type, word_t size_bits);          /* slot of a new object; stops if it cannot */
word_t make_error(word_t type, word_t size_bits, word_t cnode, word_t slot);
word_t copy_of(word_t slot);
word_t badged(word_t slot, word_t rights, word_t badge);
void *look_at(word_t frame);                          /* map a 4 KiB frame for the first thread */
void require(word_t error, const char *what);

/* The fault handler is an address in the child's capability space. */
struct child make_child(void (*run)(word_t), word_t argument, word_t priority,
                        word_t fault_handler);
/* In another capability space than its own CNode; 0: in that. */
struct child make_child_in(word_t space, void (*run)(word_t), word_t argument, word_t priority,
                           word_t fault_handler);
struct child make_bare_child(void (*run)(word_t), word_t argument, word_t priority);
word_t give_time(word_t tcb); /* where it is a capability: a context of its own, by turns with its equals; else nothing */
void make_passive(const struct child *child); /* it has no time of its own any more */
void give(struct child *child, word_t slot, word_t from, word_t rights, word_t badge);
void start(const struct child *child);
struct child run_child(void (*run)(word_t), word_t argument, word_t priority,
                       word_t endpoint, word_t badge);

/* Either side. */
struct message receive(word_t endpoint);
word_t send(word_t number, word_t cap, word_t value);  /* one word; returns r0 */
struct message call(word_t cap, word_t label, word_t value);
struct message reply_receive(word_t endpoint, word_t label, word_t value);
word_t wait_report(void);                              /* first thread: the next report */
void tell(word_t value);                               /* child: report */
_Noreturn void rest(void);                             /* child: never run again */
_Noreturn void tells(word_t value);                    /* a child: report, then rest */
void let_others_run(void);                             /* first thread: whoever can, has run */

#endif
