// A bus with time-outs and retries, through a table of operations.
//! declared: int bus_read(unsigned, unsigned char *, unsigned); extern unsigned char bus_bytes[];
//! interrupt: bus_read(0x50, bus_bytes, 4);
//! call: return bus_read(argument, bus_bytes, argument & 15);
//! TRIES: 3
//! TRIES: 5
//! PATIENCE: 0x3e8
//! PATIENCE: 0xc8
unsigned char bus_bytes[16];
struct bus;
struct operations {
    int (*start)(struct bus *, unsigned);
    int (*byte)(struct bus *, unsigned char *);
    void (*stop)(struct bus *);
};
struct bus {
    const struct operations *op;
    volatile unsigned *at;
    unsigned errors;
};
static int await(struct bus *b, unsigned bit) {
    unsigned n = @PATIENCE@;
    while (!(b->at[1] & bit)) if (!--n) return -1;
    return 0;
}
static int master_start(struct bus *b, unsigned address) {
    b->at[0] = address << 1;
    return await(b, 1);
}
static int master_byte(struct bus *b, unsigned char *to) {
    if (await(b, 2)) return -1;
    *to = b->at[2];
    return 0;
}
static void master_stop(struct bus *b) {
    b->at[3] = 1;
    while (b->at[1] & 0x100) ;
}
static int loop_start(struct bus *b, unsigned address) {
    return (int)(address & 0x80);
}
static int loop_byte(struct bus *b, unsigned char *to) {
    *to = b->errors;
    return 0;
}
static void loop_stop(struct bus *b) {
    b->errors = 0;
}
static const struct operations master = { master_start, master_byte, master_stop }, looped = { loop_start, loop_byte, loop_stop };
static struct bus busses[2] = { { &master, (volatile unsigned *)0x44E0B000, 0 }, { &looped, 0, 0 } };
int bus_read(unsigned address, unsigned char *to, unsigned length) {
    struct bus *b = &busses[address & 1];
    for (int tries = 0; tries < @TRIES@; tries++) {
        if (b->op->start(b, address)) {
            b->errors++;
            b->op->stop(b);
            continue;
        }
        unsigned i = 0;
        while (i < length && !b->op->byte(b, to + i)) i++;
        b->op->stop(b);
        if (i == length) return 0;
    }
    return -1;
}
