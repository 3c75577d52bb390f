/* SPDX-License-Identifier: BSD-2-Clause */
/* Ready queues without a summary: the highest is found by looking at each. */
#include <kernel.h>
#include <ready.h>

struct queue ready[PRIORITIES];

void ready_append(struct tcb *thread)
{
    queue_append(&ready[thread->priority], thread);
}

void ready_prepend(struct tcb *thread)
{
    queue_prepend(&ready[thread->priority], thread);
}

void ready_remove(struct tcb *thread)
{
    queue_remove(&ready[thread->priority], thread);
}

struct tcb *ready_take(word_t least)
{
    /* bound: PRIORITIES + 1 */
    for (word_t left = PRIORITIES; left != 0 && left > least; left--) {
        struct tcb *first = ready[left - 1].head;

        if (first != NULL) {
            ready_remove(first);
            return first;
        }
    }
    return NULL;
}
