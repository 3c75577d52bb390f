/* A small firmware: UART, ring buffers, frames with a CRC, commands, timers, threads, and a log. */

typedef unsigned char byte;
typedef unsigned word;
#define UART ((volatile struct uart *)0x44E09000)
#define CONTROLLER ((volatile struct controller *)0x48200000)
#define ASSERT(condition) do { if (!(condition)) panic(#condition, __LINE__); } while (0)

struct uart { word data, enable, identity, line, unused, status; };
struct controller { word pending, acknowledge; };
struct ring { byte bytes[64]; word head, tail; };
struct thread { word sp; int state; struct thread *next; byte priority; };
struct timer { struct timer *next; int left, period; void (*expired)(struct timer *); void *owner; };
struct command { word code; int (*run)(word argument, int length); };

extern void switch_to(struct thread *from, struct thread *to);
extern int sensors_poll(void);

static struct ring received, sent;
static struct thread threads[4], *current = threads, *ready;
static struct timer *timers;
static word ticks, values[8], frames, errors;
static byte frame[40];
static int place, expected, state;

/* The end: nothing returns from here. */
static void put_polled(byte c) {
    while (!(UART->status & 0x20))
        ;
    UART->data = c;
}

static void text_polled(const char *text) {
    while (*text) put_polled((byte)*text++);
}

__attribute__((noinline)) static void print_number(word n, word base) {
    char digits[12];
    int i = 0;
    do digits[i++] = "0123456789abcdef"[n % base]; while ((n /= base) && i < 12);
    while (i) put_polled((byte)digits[--i]);
}

__attribute__((noinline)) static void print(const char *form, word a, word b) {
    for (; *form; form++) {
        if (*form != '%') { put_polled((byte)*form); continue; }
        switch (*++form) {
        case 'd': print_number(a, 10); a = b; break;
        case 'x': print_number(a, 16); a = b; break;
        case 's': text_polled((const char *)a); a = b; break;
        case 'c': put_polled((byte)a); a = b; break;
        case '%': put_polled('%'); break;
        default: return;
        }
    }
}

__attribute__((noinline)) void halt(void) {
    for (;;) ;
}

__attribute__((noinline)) void panic(const char *text, word line) {
    print("panic: %s in line %d\n", (word)text, line);
    halt();
}

void fault(word address) { panic("fault", address); }

/* Ring buffers. */
__attribute__((noinline)) static void ring_put(struct ring *ring, byte b) {
    ASSERT(ring->head - ring->tail < sizeof ring->bytes);
    ring->bytes[ring->head++ % sizeof ring->bytes] = b;
}

__attribute__((noinline)) static int ring_get(struct ring *ring) {
    if (ring->head == ring->tail) return -1;
    return ring->bytes[ring->tail++ % sizeof ring->bytes];
}

/* CRC with a table of 16 entries. */
static const word crc_table[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
};

__attribute__((noinline)) word crc(const byte *bytes, int length) {
    word sum = ~0u;
    for (int i = 0; i < length; i++) {
        sum = crc_table[(sum ^ bytes[i]) & 15] ^ sum >> 4;
        sum = crc_table[(sum ^ bytes[i] >> 4) & 15] ^ sum >> 4;
    }
    return ~sum;
}

/* Commands, by a table. */
static int set_value(word argument, int length) { values[argument & 7] = frame[length & 31]; return 0; }
static int get_value(word argument, int length) { return (int)values[argument & 7] + length; }
static int count_frames(word argument, int length) { return (int)(frames + argument) - length; }
static const struct command commands[] = {{1, set_value}, {2, get_value}, {7, count_frames}};

__attribute__((noinline)) static int command(word code, word argument, int length) {
    for (word i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].code == code) return commands[i].run(argument, length);
    return -1;
}

/* The protocol: a state machine over bytes. */
__attribute__((noinline)) static void protocol(byte b) {
    switch (state) {
    case 0: state = b == 0x7E; break;
    case 1: expected = b & 31; place = 0; state = 2; break;
    case 2: frame[place++] = b; if (place >= expected) state = 3; break;
    case 3: frames++; if ((crc(frame, expected) & 0xFF) != b) { errors++; state = 5; break; } state = 4; break;
    case 4: ring_put(&sent, (byte)command(b, frame[0], expected)); state = 0; break;
    case 5: if (b == 0x7E) state = 1; break;
    default: panic("state", (word)state);
    }
}

/* Timers with callbacks. */
static void blink(struct timer *timer) { values[0] ^= 1; timer->left = timer->period; }
static void measure(struct timer *timer) { values[1] = (word)sensors_poll(); timer->left = timer->period; }

__attribute__((noinline)) static void advance_timers(void) {
    for (struct timer *t = timers; t; t = t->next)
        if (--t->left == 0) t->expired(t);
}

/* Threads. */
__attribute__((noinline)) static struct thread *highest(void) {
    struct thread *best = 0;
    for (int i = 0; i < 4; i++)
        if (threads[i].state && (!best || threads[i].priority > best->priority)) best = &threads[i];
    ASSERT(best);
    return best;
}

__attribute__((noinline)) static void reschedule(void) {
    struct thread *from = current, *to = highest();
    if (from == to) return;
    current = to;
    switch_to(from, to);
}

__attribute__((noinline)) static void wake(struct thread *thread) {
    ASSERT(thread >= threads && thread < threads + 4);
    thread->state = 1;
    thread->next = ready;
    ready = thread;
}

/* The entries. */
void handle_interrupt(void) {
    word line = CONTROLLER->pending;
    switch (line) {
    case 72:
        for (int i = 0; i < 16 && UART->line & 1; i++) ring_put(&received, (byte)UART->data);
        wake(&threads[1]);
        break;
    case 68: ticks++; advance_timers(); break;
    case 74: { int c = ring_get(&sent); if (c >= 0) put_polled((byte)c); break; }
    case 75: wake(&threads[2]); break;
    case 76: wake(&threads[3]); break;
    default: ASSERT(line < 128);
    }
    CONTROLLER->acknowledge = 1;
    reschedule();
}

int handle_service(word number, word argument) {
    ASSERT(number < 8);
    switch (number) {
    case 0: return (int)ticks;
    case 1: current->state = 0; reschedule(); return 0;
    case 2: wake(&threads[argument & 3]); return 0;
    case 3: protocol((byte)argument); return 0;
    case 4: return ring_get(&received);
    case 5: ring_put(&sent, (byte)argument); return 0;
    default: print("service %d %x\n", number, argument); return -1;
    }
}

void *memset(void *to, int b, word n) {
    for (byte *at = to; n--;) *at++ = (byte)b;
    return to;
}

/* Threads run in loops of their own, and are never called. */
static void reader(void *argument) {
    for (;;) { int b = ring_get(&received); if (b >= 0) protocol((byte)b); else *(word *)argument += 1; }
}
static void idler(void *argument) {
    for (;;) __asm__ volatile("" : : "r"(argument) : "memory");
}

static struct { void (*run)(void *); void *argument; word priority; } const bodies[] = {
    {reader, &values[5], 3}, {idler, &values[6], 0},
};

void start(void) {
    static struct timer first, second;
    first = (struct timer){0, 10, 10, blink, 0};
    second = (struct timer){&first, 4, 4, measure, 0};
    timers = &second;
    for (word i = 0; i < 2; i++) threads[i].priority = (byte)bodies[i].priority;
    bodies[1].run(bodies[1].argument);
}
