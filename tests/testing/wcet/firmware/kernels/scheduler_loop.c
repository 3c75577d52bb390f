// In the manner of ThreadX: contexts are restored, or left for a loop that awaits a thread.
//! WHEEL: 8
//! WHEEL: 32
//! LOWEST: unsigned n = 0; while (!(m & 1)) { m >>= 1; n++; } return n;
//! LOWEST: unsigned n = 0; m &= -m; if (m & 0xFFFF0000) n += 16; if (m & 0xFF00FF00) n += 8; if (m & 0xF0F0F0F0) n += 4; if (m & 0xCCCCCCCC) n += 2; if (m & 0xAAAAAAAA) n++; return n;
//! LOWEST: return 31 - __builtin_clz(m & -m);
//! CLOCK: 68
//! CLOCK: 29
typedef struct thread {
    unsigned id, runs;
    void *sp;
    unsigned priority, state;
    struct thread *next, *previous;
    void (*cleanup)(struct thread *);
    void (*entry)(unsigned);
    struct timer {
        unsigned remaining, again;
        void (*expired)(unsigned);
        unsigned argument;
        struct timer *next, *previous;
    } timer;
} thread;
thread *current_thread, *execute_thread;
unsigned system_state, disabled;
extern void system_return(void);
static thread *lists[32];
static unsigned map, lowest[32];
static struct timer *wheel[@WHEEL@], **wheel_at = wheel;
static unsigned clock_ticks, slice;
static unsigned lowest_set(unsigned m) {
    @LOWEST@
}
__attribute__((noinline)) void thread_resume(thread *t) {
    unsigned mask = board_lock();
    if (t->state) {
        t->state = 0;
        unsigned p = t->priority & 31;
        thread *head = lists[p];
        if (head) {
            t->next = head;
            t->previous = head->previous;
            head->previous->next = t;
            head->previous = t;
        }
        else {
            lists[p] = t->next = t->previous = t;
            map |= 1u << p;
            if (!execute_thread || p < execute_thread->priority) execute_thread = t;
        }
    }
    board_unlock(mask);
    if (execute_thread != current_thread && !system_state && !disabled) system_return();
}
__attribute__((noinline)) void thread_suspend(thread *t) {
    unsigned mask = board_lock(), p = t->priority & 31;
    t->state = 1;
    if (t->next == t) {
        lists[p] = 0;
        map &= ~(1u << p);
    }
    else {
        t->next->previous = t->previous;
        t->previous->next = t->next;
        if (lists[p] == t) lists[p] = t->next;
    }
    execute_thread = map ? lists[lowest_set(map)] : 0;
    board_unlock(mask);
    if (execute_thread != current_thread && !system_state && !disabled) system_return();
}
static void thread_timeout(unsigned argument) {
    thread *t = (thread *)argument;
    if (t->cleanup) t->cleanup(t);
    thread_resume(t);
}
static unsigned flags;
static thread *waiting;
static void flags_cleanup(thread *t) {
    if (waiting == t) waiting = 0;
}
static unsigned rang;
static void ring(unsigned argument) {
    rang += argument;
}
void timer_tick(void) {
    clock_ticks++;
    if (slice && --slice == 0 && current_thread) {
        lists[current_thread->priority & 31] = current_thread->next;
        execute_thread = current_thread->next;
    }
    struct timer *list = *wheel_at;
    *wheel_at = 0;
    if (++wheel_at == wheel + @WHEEL@) wheel_at = wheel;
    while (list) {
        struct timer *t = list;
        list = t->next == t ? 0 : t->next;
        if (t->remaining > @WHEEL@) {
            t->remaining -= @WHEEL@;
            *wheel_at = t;
            continue;
        }
        if (t->expired) t->expired(t->argument);
        t->remaining = t->again;
    }
}
void flags_set(unsigned set) {
    flags |= set;
    if (waiting) {
        thread *t = waiting;
        waiting = 0;
        thread_resume(t);
    }
}
@SERVING@
void board_interrupt(void) {
    unsigned line = controller[0];
    if (line == @CLOCK@) timer_tick();
    else serve(line);
    if (line == 41) flags_set(1);
    controller[1] = line;
}
unsigned board_call(unsigned number, unsigned argument) {
    switch (number) {
        case 200: thread_suspend(current_thread);
        break;
        case 201: flags_set(argument);
        break;
        @CALLS@    default: return clock_ticks;
    }
    return 0;
}
static thread threads[3];
void board_start(void) {
    for (unsigned i = 0; i < 3; i++) {
        threads[i].priority = i;
        threads[i].state = 1;
        threads[i].cleanup = flags_cleanup;
        threads[i].timer.expired = i ? thread_timeout : ring;
        threads[i].timer.argument = (unsigned)&threads[i];
        thread_resume(&threads[i]);
    }
    wheel[0] = &threads[0].timer;
    board_register_all();
    extern void schedule(void);
    schedule();
}
