// In the manner of FreeRTOS: lists by priority; both entries save and load whole contexts.
//! LEVEL_COUNT: 4
//! LEVEL_COUNT: 5
//! LEVEL_COUNT: 8
//! LEVEL_COUNT: 16
//! BYTES: 64
//! BYTES: 160
//! MESSAGE: 4
//! MESSAGE: 8
//! MESSAGE: 16
//! CLOCK: 68
//! CLOCK: 29
typedef struct item {
    unsigned value;
    struct item *next, *previous;
    void *owner, *list;
} item;
typedef struct list {
    unsigned count;
    item *index;
    item end;
} list;
typedef struct task {
    volatile unsigned *sp;
    item state, event;
    unsigned priority, notified;
    char name[8];
} task;
#define LEVELS @LEVEL_COUNT@
static list ready[LEVELS], delayed, suspended;
task *volatile current_task;
static volatile unsigned now, top, missed, locked;
#define CHECK(c) do { if (!(c)) { board_lock(); for (;;) ; } } while (0)
__attribute__((noinline)) void list_add(list *l, item *i) {
    item *at = l->index;
    i->next = at;
    i->previous = at->previous;
    at->previous->next = i;
    at->previous = i;
    i->list = l;
    l->count++;
}
__attribute__((noinline)) void list_insert(list *l, item *i) {
    item *at;
    unsigned value = i->value;
    if (value == ~0u) at = l->end.previous;
    else for (at = &l->end; at->next->value <= value; at = at->next) ;
    i->next = at->next;
    i->next->previous = i;
    i->previous = at;
    at->next = i;
    i->list = l;
    l->count++;
}
__attribute__((noinline)) unsigned list_remove(item *i) {
    list *l = i->list;
    i->next->previous = i->previous;
    i->previous->next = i->next;
    if (l->index == i) l->index = i->previous;
    i->list = 0;
    return --l->count;
}
static void make_ready(task *t) {
    if (t->priority > top) top = t->priority;
    list_add(&ready[t->priority], &t->state);
}
void select_task(void) {
    if (locked) {
        missed = 1;
        return;
    }
    missed = 0;
    unsigned level = top;
    while (ready[level].count == 0) {
        CHECK(level);
        --level;
    }
    list *l = &ready[level];
    l->index = l->index->next;
    if (l->index == &l->end) l->index = l->index->next;
    current_task = l->index->owner;
    top = level;
}
static int tick(void) {
    int switched = 0;
    now++;
    while (delayed.count) {
        task *t = delayed.end.next->owner;
        if (now < t->state.value) break;
        list_remove(&t->state);
        if (t->event.list) list_remove(&t->event);
        make_ready(t);
        if (t->priority >= current_task->priority) switched = 1;
    }
    if (ready[current_task->priority].count > 1) switched = 1;
    return switched;
}
typedef struct queue {
    char *first, *to, *from, *limit;
    unsigned length, size, waiting;
    list receivers;
} queue;
static queue mail;
static char mail_bytes[@BYTES@];
int queue_send_from_interrupt(queue *q, const void *message, int *woken) {
    unsigned mask = board_lock();
    int sent = 0;
    if (q->waiting < q->length) {
        memcpy(q->to, message, q->size);
        q->to += q->size;
        if (q->to >= q->limit) q->to = q->first;
        q->waiting++;
        sent = 1;
        if (q->receivers.count) {
            task *t = q->receivers.end.next->owner;
            list_remove(&t->event);
            list_remove(&t->state);
            make_ready(t);
            if (t->priority > current_task->priority) *woken = 1;
        }
    }
    board_unlock(mask);
    return sent;
}
void task_delay(unsigned ticks) {
    unsigned mask = board_lock();
    current_task->state.value = now + ticks;
    list_remove(&current_task->state);
    list_insert(&delayed, &current_task->state);
    board_unlock(mask);
}
@SERVING@
void board_interrupt(void) {
    unsigned line = controller[0];
    int woken = 0;
    if (line == @CLOCK@) woken = tick();
    else serve(line);
    if (line == 40) queue_send_from_interrupt(&mail, &line, &woken);
    controller[1] = line;
    if (woken) select_task();
}
unsigned board_call(unsigned number, unsigned argument) {
    switch (number) {
        @CALLS@    default: task_delay(argument);
    }
    return now;
}
static task tasks[4];
void board_start(void) {
    for (unsigned i = 0; i < LEVELS; i++) {
        ready[i].index = &ready[i].end;
        ready[i].end.value = ~0u;
        ready[i].end.next = ready[i].end.previous = &ready[i].end;
    }
    for (unsigned i = 0; i < 4; i++) {
        tasks[i].priority = i & (LEVELS - 1);
        tasks[i].state.owner = tasks[i].event.owner = &tasks[i];
        make_ready(&tasks[i]);
    }
    mail.first = mail.to = mail_bytes;
    mail.limit = mail_bytes + sizeof mail_bytes;
    mail.size = @MESSAGE@;
    mail.length = sizeof mail_bytes / @MESSAGE@;
    current_task = tasks;
    board_register_all();
    board_call(99, 1);
    select_task();
    for (;;) ;
}
