// A microkernel that saves users' registers in threads, with a table of system calls.
//! WORDS: 4
//! WORDS: 16
//! WORDS: 64
struct thread {
    unsigned registers[17];
    struct thread *next, *peer;
    unsigned state, words[@WORDS@], length;
};
struct thread threads[4], *current_thread = threads;
static struct thread *ready_first, *ready_last;
static void enqueue(struct thread *t) {
    t->next = 0;
    if (ready_last) ready_last->next = t;
    else ready_first = t;
    ready_last = t;
}
static void pick(void) {
    struct thread *t = ready_first;
    while (t && t->state) t = t->next;
    if (!t) fatal(1);
    current_thread = t;
}
static int call_send(unsigned argument) {
    struct thread *to = &threads[argument & 3];
    if (to->state != 2) return -1;
    unsigned n = current_thread->length < @WORDS@ ? current_thread->length : @WORDS@;
    for (unsigned i = 0; i < n; i++) to->words[i] = current_thread->words[i];
    to->state = 0;
    enqueue(to);
    return 0;
}
static int call_receive(unsigned argument) {
    current_thread->state = 2;
    current_thread->length = argument;
    pick();
    return 0;
}
static int call_yield(unsigned argument) {
    enqueue(current_thread);
    pick();
    return (int)argument;
}
static int call_info(unsigned argument) {
    return (int)(current_thread - threads) + (int)argument;
}
static int (*const calls[])(unsigned) = { call_send, call_receive, call_yield, call_info };
@SERVING@
void board_interrupt(void) {
    unsigned line = controller[0];
    serve(line);
    controller[1] = line;
    if (threads[3].state) {
        threads[3].state = 0;
        enqueue(&threads[3]);
    }
}
unsigned board_call(unsigned number, unsigned argument) {
    if (number < sizeof calls / sizeof *calls) {
        current_thread->registers[0] = (unsigned)calls[number](argument);
        return 0;
    }
    switch (number) {
        @CALLS@    default: fatal(number);
    }
    return 0;
}
void board_start(void) {
    for (int i = 0; i < 4; i++) enqueue(&threads[i]);
    extern void leave(void);
    board_register_all();
    pick();
    leave();
}
