// Timers in a list, each with a callback and its argument, which start-up registers.
//! declared: void timers_advance(void); void timers_start(void);
//! interrupt: timers_advance();
//! call: timers_start();
//! ARGUMENT: void *
//! ARGUMENT: struct timer *
//! ARGUMENT: unsigned 
struct timer {
    struct timer *next;
    int left, period;
    void (*expired)(@ARGUMENT@);
    @ARGUMENT@argument;
};
static struct timer pool[4], *active;
static unsigned blinks, beats;
static void blink(@ARGUMENT@a) {
    blinks += (unsigned)a & 1;
}
static void beat(@ARGUMENT@a) {
    beats ^= (unsigned)a;
}
static void stop(@ARGUMENT@a) {
    active = 0;
}
void timers_advance(void) {
    for (struct timer **at = &active; *at; ) {
        struct timer *t = *at;
        if (--t->left > 0) {
            at = &t->next;
            continue;
        }
        t->expired(t->argument);
        if (t->period) {
            t->left = t->period;
            at = &t->next;
        } else *at = t->next;
    }
}
static void add(struct timer *t, int period, void (*f)(@ARGUMENT@), @ARGUMENT@a) {
    struct timer **at = &active;
    while (*at && (*at)->left < period) at = &(*at)->next;
    t->next = *at;
    t->left = t->period = period;
    t->expired = f;
    t->argument = a;
    *at = t;
}
void timers_start(void) {
    add(pool, 5, blink, (@ARGUMENT@)pool);
    add(pool + 1, 9, beat, (@ARGUMENT@)3);
    add(pool + 2, 100, stop, 0);
}
