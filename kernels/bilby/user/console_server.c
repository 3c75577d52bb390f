/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console server: a program that alone has the UART.  Its first thread writes what clients
 * send; its second waits for input, and answers each call with one character.  So a client that
 * waits for input keeps nobody from writing.
 */
#include "console_client.h"
#include "program.h"
#include <devices.h>

#define STACK_WORDS 256

int main(const struct boot_info *unused);

static word_t stack[STACK_WORDS] __attribute__((aligned(8)));

static void put(char c)
{
    while (uart_is_full(DEVICE_ADDRESS))
        ;
    uart_put(DEVICE_ADDRESS, c);
}

/* The bytes of a message: as many as its label says, at most the ones that have arrived. */
static void write_text(const struct message *m)
{
    word_t bytes = message_label(m->info);
    word_t arrived = message_length(m->info) * 4;

    for (word_t i = 0; i < bytes && i < arrived; i++) {
        word_t word = i / 4 < MESSAGE_REGISTERS ? m->w[i / 4] : BUFFER[BUFFER_WORDS + i / 4];

        put((char)(word >> (i % 4 * 8)));
    }
}

static char read_char(void)
{
    while (!uart_has_input(DEVICE_ADDRESS)) {
        struct message m = { OWN_INTERRUPTS, 0, { 0, 0, 0, 0 } };

        irq_acknowledge(OWN_LINE);
        syscall(SYS_RECEIVE, &m);
    }
    return uart_get(DEVICE_ADDRESS);
}

/* The second thread. */
static _Noreturn void serve_input(void)
{
    struct message m = { CONSOLE_INPUT, 0, { 0, 0, 0, 0 } };

    uart_listen(DEVICE_ADDRESS);
    syscall(SYS_RECEIVE, &m);
    for (;;) {
        m.w[0] = (unsigned char)read_char();
        m.badge = CONSOLE_INPUT;
        m.info = message_make(1, 0, 0, 0);
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

int main(const struct boot_info *unused)
{
    struct message m = { CONSOLE_OUTPUT, 0, { 0, 0, 0, 0 } };

    (void)unused;
    if (tcb_write_registers(OWN_SECOND, (word_t)serve_input, (word_t)(stack + STACK_WORDS), 0, 0)
        || tcb_resume(OWN_SECOND))
        return 2;
    syscall(SYS_RECEIVE, &m);
    for (;;) {
        write_text(&m);
        m.badge = CONSOLE_OUTPUT;
        m.info = message_make(0, 0, 0, 0);
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}
