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
 * signal donates it, too, and waits itself, whether it comes before or after.
 *
 * A thread is runnable (THREAD_RUNNING) only on a context; but for the current one, of which the end of
 * its call decides (timing_settle).  A thread that would run and has none waits for one
 * (THREAD_WITHOUT_CONTEXT), and goes on when it is given one.  A signal does not reach a bound thread
 * that would never have one: it stays pending until it is given a context.  A thread that waits to
 * send and loses its context does not send any more: nothing could be donated to whoever receives.  It makes
 * its call again when it goes on.
 *
 * Invariants: thread->context == c  <=>  c->thread == thread; thread->home == c  <=>  c->home ==
 * thread; notification->context == c  <=>  c->notification == notification, and then c has no home;
 * a donee neither waits to receive nor is inactive; a thread that has no context has no idle one
 * at home; who is runnable or waits to send has a context, and who waits for one has none; while a
 * signal is pending and the bound thread waits to receive, no context is bound to either; while it is
 * pending and the bound thread waits for a context, the notification has none that is on nobody.
 */
#include <timing.h>
#include <bound.h>

static inline void set(struct context *context, struct tcb *thread, bool runs)
{
    context->thread = thread;
    context->excused = 0;
    context->told = 0;
    if (!runs)
        context->begins = BEGINS_WOKEN;
    thread->context = context;
}

/* A context, taken from who had it, on a thread that has none. */
static void put_on(struct context *context, struct tcb *thread)
{
    set(context, thread, context == running);
}

/* The same of one that may be on nobody; false if it is on somebody. */
static bool put_on_free(struct context *context, struct tcb *thread)
{
    bool runs = context == running;

    READ_LINE(&context->thread);
    if (!context_is_free(context))
        return false;
    set(context, thread, runs);
    return true;
}

/* A thread that may have waited for a context is on one: then it is runnable, and takes its turn. */
static void go_on(struct tcb *thread)
{
    if (thread->state != THREAD_WITHOUT_CONTEXT)
        return;
    thread->state = THREAD_RUNNING;
    sched_queue(thread);
}

/* A thread, current or blocked, gets its own context, if it has no other, and that is on nobody. */
static bool take_own(struct tcb *thread)
{
    struct context *own = thread->home;

    return own != NULL && thread->context == NULL && put_on_free(context_at(own), thread);
}

/* The same of any thread. */
void donation_take_own(struct tcb *thread)
{
    if (take_own(thread))
        go_on(thread);
}

/* A signal donates the notification's context to who gets it, if it has none, and that is on nobody. */
void donation_for_signal(const struct notification *notification, struct tcb *thread)
{
    struct context *context = notification->context;

    if (thread->context == NULL && context != NULL)
        (void)put_on_free(context_at(context), thread);
}

/* The bound thread gets the context of its notification, if it waits for one, and that is on nobody. */
void donation_offer(const struct notification *notification)
{
    struct context *context = notification->context;
    struct tcb *thread = notification->bound;

    if (context == NULL || thread == NULL)
        return;
    thread = tcb_at(thread);
    if (thread->state == THREAD_WITHOUT_CONTEXT && put_on_free(context_at(context), thread))
        go_on(thread);
}

/* The thread would run, and has no context: it waits for one, unless a pending signal donates it one. */
bool donation_wait(struct tcb *thread)
{
    struct context *context = bound_has_signal(thread) ? notification_at(thread->bound)->context : NULL;
    bool goes_on = context != NULL && put_on_free(context_at(context), thread);

    thread->state = goes_on ? THREAD_RUNNING : THREAD_WITHOUT_CONTEXT;
    return goes_on;
}

/* A context that is on nobody any more. */
static void go_home(struct context *context)
{
    struct tcb *home = context->home;

    context->thread = NULL;
    if (home != NULL) {
        home = tcb_at(home);
        if (home->context != NULL)
            return;
        put_on(context, home);
        go_on(home);
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
    (void)take_own(from);
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
    (void)take_own(server);
}

/* The thread gives up its donated context, if it has one. */
void donation_end(struct tcb *thread)
{
    struct context *context = thread->context;

    if (context == NULL || context == thread->home)
        return;
    thread->context = NULL;
    go_home(context_at(context));
    (void)take_own(thread);
}

/* The thread is inactive from now on. */
void donation_stop(struct tcb *thread)
{
    thread->donated = 0;
    donation_end(thread);
}

/*
 * Take its context away; it is in no ready queue.  It keeps no object closed that it recycles, and
 * no longer waits to send: it makes its call, or faults, again when it is on a context.
 */
void donation_lose(struct tcb *thread)
{
    thread->context = NULL;
    (void)take_own(thread);
    if (thread == current_thread)
        return;
    thread_end_call(thread);
    if (thread->state == THREAD_BLOCKED_SEND) {
        endpoint_cancel(thread);
        if (thread->fault == 0)
            thread_call_again(thread);
        thread->fault = 0;
    } else if (thread->state != THREAD_RUNNING) {
        return;
    }
    if (timing_make_runnable(thread))
        sched_queue(thread);
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
