/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A periodic control loop: a timer wakes it every millisecond, and it sees by the same timer how
 * late it is.  That is the interrupt's latency, from the moment when the timer fires until this
 * program has read the time.  A second program thread, which is not urgent, prints the worst.
 *
 * Its argument is the bound that the analyser computed, in cycles of the core; 0 if there is none.
 * In QEMU an instruction takes one nanosecond, and on a core a cycle at least: so nanoseconds
 * there count instructions.
 */
#include "console_client.h"
#include "program.h"
#include <devices.h>

#define STACK_WORDS  256
#define REPORT_EVERY 100   /* wake-ups, in which the worst may have grown */
#define REPORT_AT_LEAST 10000

int main(word_t bound);

static word_t stack[STACK_WORDS] __attribute__((aligned(8)));
static volatile word_t wakes, worst;

/* The second thread, the most urgent of all. */
static _Noreturn void control(void)
{
    word_t since = 0;

    irq_acknowledge(OWN_LINE);
    timer_start_every(DEVICE_ADDRESS, TIMER_MILLISECOND);
    for (;;) {
        struct message m = { OWN_INTERRUPTS, 0, { 0, 0, 0, 0 } };
        word_t late;

        syscall(SYS_RECEIVE, &m);
        late = timer_nanoseconds(timer_elapsed(DEVICE_ADDRESS, TIMER_MILLISECOND));
        timer_clear(DEVICE_ADDRESS);
        irq_acknowledge(OWN_LINE);
        if (late > worst)
            worst = late;
        wakes++;
        if (++since == REPORT_EVERY) {
            since = 0;
            m.badge = OWN_SIGNALS;
            m.info = message_make(0, 0, 0, 0);
            syscall(SYS_SEND, &m);
        }
    }
}

static void print_worst(word_t bound)
{
    put_string("control: ");
    put_number(wakes);
    put_string(" wake-ups, worst latency ");
    put_number(worst);
    put_string(" instructions; bound ");
    if (bound == 0)
        put_string("not computed");
    else
        put_number(bound);
    put_string(bound == 0 ? "\n" : " cycles\n");
}

int main(word_t bound)
{
    word_t printed = 0, at = 0;

    if (tcb_write_registers(OWN_SECOND, (word_t)control, (word_t)(stack + STACK_WORDS), 0, 0)
        || tcb_resume(OWN_SECOND))
        return 2;
    for (;;) {
        struct message m = { OWN_SIGNALS, 0, { 0, 0, 0, 0 } };

        syscall(SYS_RECEIVE, &m);
        if (worst <= printed && wakes - at < REPORT_AT_LEAST)
            continue;
        printed = worst;
        at = wakes;
        print_worst(bound);
    }
}
