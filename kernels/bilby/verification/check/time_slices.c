/* SPDX-License-Identifier: BSD-2-Clause */
/* Time is no capability: every thread that is runnable has its turn. */
#include "invariants.h"

void time_reach(void)
{
}

void time_reach_from_thread(const struct tcb *thread)
{
    (void)thread;
}

void time_reach_from_cap(const struct cap *cap)
{
    (void)cap;
}

word_t time_object_bytes(const struct cap *cap)
{
    (void)cap;
    return 0;
}

word_t time_queue_of(const struct tcb *thread)
{
    return thread->priority;
}

word_t time_urgency(const struct tcb *thread)
{
    return thread->priority;
}

bool time_is_waited_for(const struct tcb *thread)
{
    (void)thread;
    return false;
}

bool time_can_take_signal(const struct notification *notification, const struct tcb *thread)
{
    (void)notification;
    (void)thread;
    return true;
}

void time_check_endpoint(const struct endpoint *endpoint)
{
    (void)endpoint;
}

void time_check_notification(const struct notification *notification)
{
    (void)notification;
}

bool time_may_be_queued(const struct tcb *thread)
{
    (void)thread;
    return true;
}

bool time_has_somebody_to_deal_with(void)
{
    return false;
}

void check_time(void)
{
}
