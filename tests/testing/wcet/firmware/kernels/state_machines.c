// State machines with a queue of events; a state is a function. No contexts are switched.
//! MACHINES: 2
//! MACHINES: 3
//! MACHINES: 5
struct machine;
typedef int (*state)(struct machine *, unsigned);
struct machine {
    state now;
    unsigned events[8], head, tail, count;
};
static struct machine machines[@MACHINES@];
static int idle(struct machine *m, unsigned event), busy(struct machine *m, unsigned event);
static int failed(struct machine *m, unsigned event) {
    m->count = 0;
    if (event == 9) m->now = idle;
    return 2;
}
static int busy(struct machine *m, unsigned event) {
    m->count += event;
    if (event > 100) {
        m->now = failed;
        return 0;
    }
    if (!event) m->now = idle;
    return 1;
}
static int idle(struct machine *m, unsigned event) {
    if (event) m->now = busy;
    return 0;
}
static void post(struct machine *m, unsigned event) {
    if (m->head - m->tail >= 8) fatal(event);
    m->events[m->head++ & 7] = event;
}
static unsigned run(void) {
    unsigned done = 0;
    for (struct machine *m = machines; m < machines + @MACHINES@; m++)
    while (m->tail != m->head) {
        done += m->now(m, m->events[m->tail++ & 7]);
    }
    return done;
}
@SERVING@
void board_interrupt(void) {
    unsigned line = controller[0];
    serve(line);
    post(&machines[line % @MACHINES@], line);
    run();
    controller[1] = line;
}
unsigned board_call(unsigned number, unsigned argument) {
    switch (number) {
        @CALLS@    default: post(machines, argument);
    }
    return 0;
}
void board_start(void) {
    for (unsigned i = 0; i < @MACHINES@; i++) machines[i].now = idle;
    board_register_all();
    for (;;) {
        run();
        board_call(1, 2);
    }
}
