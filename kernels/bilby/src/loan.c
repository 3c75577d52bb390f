/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loans: who calls a thread without a context lends it its own, until the answer.
 *
 * A context is on one thread, and has at most one home, the thread it is bound to.  The answer
 * gives it back to whoever lent it; in every other case it goes home, as soon as who borrowed it
 * waits, takes the call of another, or stops.  So a server is not stopped by what happens to those
 * it works for.  Each step is constant.
 *
 * A send that may wait lends, too: the sender goes on when its context comes home.  One that does not
 * wait, or from a thread that is itself on a loan, does not reach a thread without a context.
 *
 * Invariants: thread->context == c  <=>  c->thread == thread; thread->home == c  <=>  c->home ==
 * thread; who borrows neither waits to receive nor is inactive; a thread that has no context has no
 * idle one at home.
 */
#include <timing.h>

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

/* A thread without a context gets its own, if that waits for it.  True if it did. */
static bool take_own(struct tcb *thread)
{
    struct context *own = thread->home;

    if (own == NULL || thread->context != NULL)
        return false;
    own = context_at(own);
    if (own->thread != NULL)
        return false;
    put_on(own, thread);
    return true;
}

/* The same of a thread that may be runnable: then it takes its turn.  The current one is looked at anyway. */
void loan_take_own(struct tcb *thread)
{
    if (take_own(thread) && thread->state == THREAD_RUNNING && thread != current_thread)
        sched_queue(thread);
}

/* A context that is on nobody any more. */
static void go_home(struct context *context)
{
    struct tcb *home = context->home;

    context->thread = NULL;
    if (home == NULL) {
        contexts_bound--;
        return;
    }
    home = tcb_at(home);
    if (home->context == NULL)
        loan_take_own(home);
}

/* From a thread that waits from now on, to one that has no context. */
void loan_make(struct tcb *from, struct tcb *to, bool call)
{
    struct context *context = from->context;

    if (to->context != NULL || context == NULL)
        return;
    from->context = NULL;
    from->lent = call;
    put_on(context_at(context), to);
    take_own(from);
}

/* The answer: to who lent it. */
void loan_return(struct tcb *server, struct tcb *caller)
{
    struct context *context = server->context;
    bool returns = caller->lent && caller->context == NULL && context != NULL
        && context != server->home;

    caller->lent = 0;
    if (!returns)
        return;
    server->context = NULL;
    put_on(context_at(context), caller);
    take_own(server);
}

/* The thread gives up what it has borrowed, if it has. */
void loan_end(struct tcb *thread)
{
    struct context *context = thread->context;

    if (context == NULL || context == thread->home)
        return;
    thread->context = NULL;
    go_home(context_at(context));
    take_own(thread);
}

/* The thread is inactive from now on. */
void loan_stop(struct tcb *thread)
{
    thread->lent = 0;
    loan_end(thread);
}

/* The thread is no more; it is inactive. */
void loan_leave_thread(struct tcb *thread)
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
        thread->context = NULL;
    }
    contexts_bound--;
}

/* The current thread is told that nobody receives its message. */
void loan_refuse(struct tcb *sender)
{
    sender->regs[REG_BADGE] = SYSCALL_FAILED | ERROR_NO_CONTEXT;
    sender->regs[REG_MESSAGE] = message_make(0, 0, 0, ERROR_NO_CONTEXT);
}
