/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The assignment of contexts to threads.  A call to a thread without a context donates the
 * caller's, until the answer; that thread is the donee.
 *
 * A context is on one thread, and has at most one home, the thread it is bound to.  The answer
 * returns it to the donor; in every other case it goes home, as soon as the donee waits, takes the
 * call of another, or stops.  So the fate of its clients does not stop a server.  Each step is
 * constant.
 *
 * A context may be bound to a notification instead: then it is on nobody, until a thread without a
 * context gets a signal.  It is donated to that thread.  If another has it meanwhile, the thread that is
 * bound to the notification gets it next.  If that thread waits for a context in the middle of its work, a
 * signal donates it, too, and waits itself.
 *
 * A thread is runnable (THREAD_RUNNING) only on a context; but for the current one, of which the
 * scheduler decides in the end.  A thread that would run and has none waits for one
 * (THREAD_WITHOUT_CONTEXT), and goes on when it is given one.  A signal does not reach a bound thread
 * that would never have one: it stays pending until it is given a context.  A thread that waits to
 * send and loses its context does not send any more: nothing could be donated to whoever receives.  It makes
 * its call again when it goes on.
 *
 * Invariants: thread->context == c  <=>  c->thread == thread; thread->home == c  <=>  c->home ==
 * thread; notification->context == c  <=>  c->notification == notification, and then c has no home;
 * a donee neither waits to receive nor is inactive; a thread that has no context has no idle one
 * at home; who is runnable or waits to send has a context, and who waits for one has none; while a
 * signal is pending and the bound thread waits to receive, no context is bound to either.
 */
#include <timing.h>
#include <bound.h>

/* A context that is on nobody, on a thread that has none. */
static void put_on(struct context *context, struct tcb *thread)
{
    context->thread = thread;
    context->excused = 0;
    context->told = 0;
    if (context != running)
        context->begins = BEGINS_WOKEN;
    thread->context = context;
}

/* The same of a thread that may wait for a context: then it is runnable, and takes its turn. */
static void give(struct context *context, struct tcb *thread)
{
    put_on(context, thread);
    if (thread->state == THREAD_WITHOUT_CONTEXT && timing_make_runnable(thread))
        sched_queue(thread);
}

/* The context at home in a thread that has none, if it is on nobody; else null. */
static struct context *own_context(const struct tcb *thread)
{
    struct context *own = thread->home;

    if (own == NULL || thread->context != NULL)
        return NULL;
    own = context_at(own);
    return context_is_free(own) ? own : NULL;
}

/* A thread gets its own context, if it has no other: the current one, or one that is blocked. */
static void take_own(struct tcb *thread)
{
    struct context *own = own_context(thread);

    if (own != NULL)
        put_on(own, thread);
}

/* The same of any thread. */
void donation_take_own(struct tcb *thread)
{
    struct context *own = own_context(thread);

    if (own != NULL)
        give(own, thread);
}

/* A signal donates the notification's context to who gets it, if it has none, and that is on nobody. */
void donation_for_signal(const struct notification *notification, struct tcb *thread)
{
    struct context *context = notification->context;

    if (thread->context != NULL || context == NULL)
        return;
    context = context_at(context);
    if (context_is_free(context))
        put_on(context, thread);
}

/* The bound thread gets the context of its notification, if it waits for one, and that is on nobody. */
void donation_offer(const struct notification *notification)
{
    struct context *context = notification->context;
    struct tcb *thread = notification->bound;

    if (context == NULL || thread == NULL)
        return;
    context = context_at(context);
    thread = tcb_at(thread);
    if (thread->state == THREAD_WITHOUT_CONTEXT && context_is_free(context))
        give(context, thread);
}

/* A context that is on nobody any more. */
static void go_home(struct context *context)
{
    struct tcb *home = context->home;

    context->thread = NULL;
    if (home != NULL) {
        home = tcb_at(home);
        if (home->context == NULL)
            give(context, home);
    } else if (context->notification != NULL) {
        donation_offer(notification_at(context->notification));
    } else {
        contexts_bound--;
    }
}

/* From a thread that waits from now on, to one that has no context. */
void donation_make(struct tcb *from, struct tcb *to, bool call)
{
    struct context *context = from->context;

    if (to->context != NULL || context == NULL)
        return;
    from->context = NULL;
    from->donated = call;
    put_on(context_at(context), to);
    take_own(from);
}

/* The answer: it goes back to its donor. */
void donation_return(struct tcb *server, struct tcb *caller)
{
    struct context *context = server->context;
    bool returns = caller->donated && caller->context == NULL && context != NULL
        && context != server->home;

    caller->donated = 0;
    if (!returns)
        return;
    server->context = NULL;
    put_on(context_at(context), caller);
    take_own(server);
}

/* The thread gives up its donated context, if it has one. */
void donation_end(struct tcb *thread)
{
    struct context *context = thread->context;

    if (context == NULL || context == thread->home)
        return;
    thread->context = NULL;
    go_home(context_at(context));
    take_own(thread);
}

/* The thread is inactive from now on. */
void donation_stop(struct tcb *thread)
{
    thread->donated = 0;
    donation_end(thread);
}

/*
 * Take its context away; it is in no ready queue.  It keeps no object closed that it recycles, and
 * no longer waits to send: it makes its call, or faults, again.
 */
void donation_lose(struct tcb *thread)
{
    thread->context = NULL;
    if (thread == current_thread)
        return;
    thread_end_call(thread);
    if (thread->state == THREAD_RUNNING)
        thread->state = THREAD_WITHOUT_CONTEXT;
    if (thread->state != THREAD_BLOCKED_SEND)
        return;
    endpoint_cancel(thread);
    if (thread->fault == 0)
        thread_call_again(thread);
    thread->fault = 0;
    thread->state = THREAD_WITHOUT_CONTEXT;
}

/* Nothing is bound to the thread any more. */
void donation_leave_thread(struct tcb *thread)
{
    struct context *own = thread->home;

    if (own == NULL)
        return;
    own = context_at(own);
    thread->home = NULL;
    own->home = NULL;
    if (own->thread != thread && own->thread != NULL)
        return;
    if (own->thread == thread) {
        own->thread = NULL;
        donation_lose(thread);
    }
    contexts_bound--;
}

/* Nothing is bound to the notification any more; a donee keeps it. */
void donation_leave_notification(struct notification *notification)
{
    struct context *context = notification->context;

    if (context == NULL)
        return;
    context = context_at(context);
    notification->context = NULL;
    context->notification = NULL;
    if (context_is_free(context))
        contexts_bound--;
}
