/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time as a capability: invocations and system calls as functions, as in bilby.h.  Only where the
 * kernel has contexts (TIME_CONTEXTS).  Durations are ticks of the board's clock.
 */
#ifndef USER_CONTEXTS_H
#define USER_CONTEXTS_H

#include "bilby.h"
#include <budget.h>
#include <devices.h>

typedef unsigned long long ticks_t; /* a time, or the time used since the last query */

#define MILLISECOND TIMER_MILLISECOND  /* of virtual time in QEMU; the timer has the same clock */
#define SLICE       (10 * MILLISECOND) /* of threads that share by turns */

ticks_t clock_now(void);

/* System calls of two addresses, whose first is served first: 0, or SYSCALL_FAILED | error, as send(). */
word_t signal_receive(word_t notification, word_t cap, struct message *message);
word_t nb_send_receive(word_t to, word_t cap, struct message *message);

word_t system_criticality(word_t level);                   /* by ROOT_SCHED_CONTROL */
word_t context_configure(word_t context, word_t budget, word_t period); /* the same */
word_t context_bind(word_t context, word_t tcb);
word_t context_unbind(word_t context);
word_t context_consumed(word_t context, ticks_t *consumed);
word_t context_yield_to(word_t context, ticks_t *consumed);
word_t tcb_set_criticality(word_t tcb, word_t criticality);
word_t tcb_set_limits(word_t tcb, word_t priority, word_t criticality);
word_t tcb_set_timeout(word_t tcb, word_t endpoint);       /* 0: nobody is told */
word_t tcb_save_caller(word_t tcb, word_t root, word_t index, word_t depth);
word_t cnode_swap_caller(word_t root, word_t index, word_t depth);

#endif
