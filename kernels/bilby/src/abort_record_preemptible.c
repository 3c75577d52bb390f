/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads that close, recycle or abort an object, and their progress.
 *
 * A closed queue only shrinks, so it needs no record of progress.  An object that is closed to be
 * recycled records the closing thread (abort_worker, recycler). If that thread does not return, the
 * object is in use again at once, by those who still wait; another thread that recycles or deletes
 * it takes it over.
 * The queue of a badged abort stays in use; its endpoint records
 *   abort_at      the first thread not looked at yet
 *   abort_last    the last thread when the abort began: later ones are not its concern
 *   abort_badge   the badge that is aborted
 *   abort_worker  the thread that began it, to be told if another finishes it
 * Invariants: abort_at == null: no badged abort is under way, and the next two mean nothing.  Else
 * state == EP_SENDING, both threads are in the queue, and abort_at is not behind abort_last.
 * abort_worker and recycler are null or a running thread whose "aborting" is this object; aborting
 * != null => that object's worker is the thread.  An object that is closed without such a thread is
 * deleted: nobody can use it.
 */
#include <abort_record.h>

/* The abort is over: tell whoever began it, unless that is who runs. */
void abort_finish(struct endpoint *endpoint)
{
    struct tcb *worker = endpoint->abort_worker;

    endpoint->abort_at = NULL;
    if (worker == NULL)
        return;
    worker->aborting = NULL;
    endpoint->abort_worker = NULL;
    if (worker == current_thread)
        return;
    worker->aborted = endpoint;
    worker->aborted_badge = endpoint->abort_badge;
}

/*
 * A thread leaves the queue: the abort goes on with the next, ends with the one
 * before, or is over.  Null: the queue is closed, which aborts everything.
 */
void abort_mend(struct endpoint *endpoint, const struct tcb *leaving)
{
    struct tcb *at = endpoint->abort_at;

    if (at == NULL)
        return;
    if (leaving == NULL || (leaving == at && leaving == endpoint->abort_last))
        abort_finish(endpoint);
    else if (leaving == at)
        endpoint->abort_at = at->wait_next;
    else if (leaving == endpoint->abort_last)
        endpoint->abort_last = leaving->wait_prev;
}

/* Nobody works on it any more: others finish a badged abort; a closed object is in use again. */
static void leave_endpoint(struct endpoint *endpoint)
{
    endpoint->abort_worker = NULL;
    if (endpoint->state == EP_CLOSED)
        endpoint->state = endpoint->head == NULL ? EP_IDLE : endpoint->opens_to;
}

static void leave_notification(struct notification *notification)
{
    notification->recycler = NULL;
    notification->signalled = 0;
}

/* The thread will not return to the object it began to recycle. */
void abort_forget(struct tcb *thread)
{
    if (thread->aborting != NULL && thread->recycles == CAP_ENDPOINT)
        leave_endpoint(thread->aborting);
    else if (thread->aborting != NULL)
        leave_notification(thread->aborting);
    thread->aborting = NULL;
    thread->aborted = NULL;
}

/* The running thread recycles this; a thread does that with at most one object. */
void abort_own(void *object, word_t type)
{
    abort_forget(current_thread);
    current_thread->aborting = object;
    current_thread->recycles = (byte_t)type;
}

/* It is about to be closed: whoever was recycling it is not any more. */
void abort_claim_endpoint(struct endpoint *endpoint, bool recycle)
{
    if (recycle)
        abort_own(endpoint, CAP_ENDPOINT);
    abort_mend(endpoint, NULL);
    if (endpoint->abort_worker != NULL)
        endpoint->abort_worker->aborting = NULL;
    endpoint->abort_worker = recycle ? current_thread : NULL;
    if (endpoint->state != EP_CLOSED)
        endpoint->opens_to = endpoint->state;
}

void abort_claim_notification(struct notification *notification, bool recycle)
{
    if (recycle)
        abort_own(notification, CAP_NOTIFICATION);
    if (notification->signalled == NOTIFICATION_CLOSED && notification->recycler != NULL)
        notification->recycler->aborting = NULL;
    notification->recycler = recycle ? current_thread : NULL;
}
