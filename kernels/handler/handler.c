/* An interrupt handler as firmware has it: UART with ring buffers, a list of timers with function
   pointers, a protocol as a state machine, a filter in soft float, a division. */
#include <stdint.h>

#define UART ((volatile uint32_t *)0x49020000)
#define TIMER ((volatile uint32_t *)0x48040000)
#define INTC ((volatile uint32_t *)0x48200000)
enum { UART_IRQ = 74, TIMER_IRQ = 37, FIFO = 16, RING = 64, FRAME = 32, TIMERS = 4 };

struct ring {
    uint8_t data[RING];
    unsigned head, tail;
};

static struct ring received, to_send;

static int ring_put(struct ring *ring, uint8_t byte)
{
    unsigned next = (ring->head + 1) % RING;
    if (next == ring->tail)
        return 0;
    ring->data[ring->head] = byte;
    ring->head = next;
    return 1;
}

static int ring_get(struct ring *ring)
{
    if (ring->head == ring->tail)
        return -1;
    uint8_t byte = ring->data[ring->tail];
    ring->tail = (ring->tail + 1) % RING;
    return byte;
}

/* Frames: 0x7E, length, payload, checksum. */
enum state { WAIT, LENGTH, PAYLOAD, CHECKSUM };

static struct {
    enum state state;
    uint8_t length, at, sum;
    uint8_t frame[FRAME];
} parser;

unsigned frames, errors;

static void send(const uint8_t *bytes, unsigned count)
{
    for (unsigned i = 0; i < count && i < FRAME; i++)
        ring_put(&to_send, bytes[i]);
}

static void frame_complete(void)
{
    frames++;
    if (parser.frame[0] == 1)
        send(parser.frame, parser.length);
}

static void parse(uint8_t byte)
{
    switch (parser.state) {
    case WAIT:
        if (byte == 0x7E)
            parser.state = LENGTH;
        break;
    case LENGTH:
        parser.length = byte;
        parser.at = parser.sum = 0;
        parser.state = byte && byte <= FRAME ? PAYLOAD : WAIT;
        break;
    case PAYLOAD:
        parser.frame[parser.at++] = byte;
        parser.sum += byte;
        if (parser.at == parser.length)
            parser.state = CHECKSUM;
        break;
    case CHECKSUM:
        if (byte == parser.sum)
            frame_complete();
        else
            errors++;
        parser.state = WAIT;
        break;
    }
}

static void uart_interrupt(void)
{
    for (int i = 0; i < FIFO && (UART[5] & 1); i++) {
        uint8_t byte = UART[0];
        if (!ring_put(&received, byte))
            errors++;
    }
    for (int i = 0; i < FIFO; i++) {
        int byte = ring_get(&received);
        if (byte < 0)
            break;
        parse(byte);
    }
    for (int i = 0; i < FIFO && (UART[5] & 0x20); i++) {
        int byte = ring_get(&to_send);
        if (byte < 0)
            break;
        UART[0] = byte;
    }
}

struct timer {
    struct timer *next;
    uint32_t due, period;
    void (*expired)(struct timer *);
};

static struct timer *timers;
static struct timer all[TIMERS];
static float level;
static uint32_t ticks, beats;
uint32_t rate;

static void sample(struct timer *timer)
{
    float measured = (float)TIMER[16] * 0.001f;
    level += (measured - level) * 0.125f;
    timer->period = level > 2.0f ? 10 : 20;
}

static void beat(struct timer *timer)
{
    beats++;
    rate = ticks / beats + timer->period % 7;
}

static void timer_interrupt(void)
{
    ticks++;
    for (struct timer *t = timers; t; t = t->next)
        if (t->due == ticks) {
            t->due += t->period;
            t->expired(t);
        }
    TIMER[6] = 2;
}

void handle_irq(void)
{
    unsigned number = INTC[16] & 0x7F;
    if (number == UART_IRQ)
        uart_interrupt();
    else if (number == TIMER_IRQ)
        timer_interrupt();
    INTC[18] = 1;
}

int main(void)
{
    for (int i = 0; i < TIMERS; i++) {
        all[i] = (struct timer){timers, i, 10, i % 2 ? sample : beat};
        timers = &all[i];
    }
    for (;;)
        __asm__ volatile("cpsie i\n\twfi");
}
