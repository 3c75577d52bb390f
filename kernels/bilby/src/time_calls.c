/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls and invocations of threads and CNodes that only exist where time is a capability:
 * the clock; calls that send and then receive; criticality, limits and timeouts of threads; reply
 * capabilities that are kept.
 */
#include <timing.h>
#include <endpoint_queue.h>

#define REG_SECOND 6 /* of a system call: the other address */

static void tell_time(void)
{
    count_t now = clock_now();

    current_thread->regs[REG_BADGE] = 0;
    current_thread->regs[REG_MESSAGE] = 0;
    current_thread->regs[REG_WORDS] = (word_t)now;
    current_thread->regs[REG_WORDS + 1] = (word_t)(now >> 32);
}

/* The capability to send through, if it is of this type and permits it; else null, and the call fails. */
static const struct cap *second_cap(word_t type)
{
    const struct slot *slot = cspace_lookup(current_thread, current_thread->regs[REG_SECOND]);
    const struct cap *cap;

    if (slot == NULL) {
        thread_fail_call(current_thread, ERROR_LOOKUP_FAILED);
        return NULL;
    }
    cap = &slot_at(slot)->cap;
    if (cap_type(cap) != type) {
        thread_fail_call(current_thread, ERROR_INVALID_CAPABILITY);
        return NULL;
    }
    if (!(type == CAP_ENDPOINT ? endpoint_cap_can_send(cap) : notification_cap_can_send(cap))) {
        thread_fail_call(current_thread, ERROR_NO_RIGHT);
        return NULL;
    }
    return cap;
}

static void signal_receive(word_t address)
{
    const struct cap *cap = second_cap(CAP_NOTIFICATION);

    if (cap == NULL)
        return;
    notification_signal((struct notification *)notification_cap_object(cap),
                        notification_cap_badge(cap));
    syscall_receive(address, false);
}

/* To somebody who waits to receive; with the sender's time, if it has none; without capabilities. */
static void send_and_donate(struct endpoint *endpoint, word_t badge)
{
    const struct message_caps none = { .count = 0 };
    struct tcb *receiver = endpoint_dequeue(endpoint);

    message_transfer(current_thread, receiver, endpoint, &none);
    receiver->regs[REG_BADGE] = badge;
    donation_make(current_thread, receiver, false);
    thread_wake(receiver);
}

static void nb_send_receive(word_t address)
{
    const struct cap *cap = second_cap(CAP_ENDPOINT);
    struct endpoint *endpoint;

    if (cap == NULL)
        return;
    endpoint = (struct endpoint *)endpoint_cap_object(cap);
    if (endpoint->state == EP_RECEIVING)
        send_and_donate(endpoint, endpoint_cap_badge(cap));
    syscall_receive(address, false);
}

bool timing_syscall(word_t address, word_t message, word_t number)
{
    (void)message;
    switch (number) {
    case SYS_CLOCK:
        tell_time();
        return true;
    case SYS_SIGNAL_RECEIVE:
        signal_receive(address);
        return true;
    case SYS_NB_SEND_RECEIVE:
        nb_send_receive(address);
        return true;
    default:
        return false;
    }
}
