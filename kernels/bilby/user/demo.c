/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first thread of the demonstration: it loads the programs of its boot archive, gives each the
 * capabilities it needs and no others, and receives their faults.
 *
 *   program   has                                      threads and their priorities
 *   console   the UART, its interrupt                  output 200, input 190
 *   control   a timer, its interrupt; may write        loop 254, report 150
 *   shell     untyped memory; may write and read       100
 */
#include "loader.h"
#include <devices.h>

#define MEMORY_BITS 19

int main(const struct boot_info *boot_info);

static word_t faults;

static struct process load(const char *name, word_t badge, word_t priority)
{
    static const char *const reasons[] = { "", " is no program\n", " is damaged\n",
                                           " has a segment in a wrong place\n" };
    struct process process = { .second = 0 };
    struct file file;
    enum load_result result;

    if (!archive_find(boot_archive, boot_archive_end, name, &file)) {
        put_string(name);
        put_string(" is not in the boot archive\n");
        exit_program(3);
    }
    result = process_load(&process, &file, priority);
    if (result != LOAD_DONE) {
        put_string(name);
        put_string(reasons[result]);
        exit_program(3);
    }
    process_give(&process, OWN_FAULTS, faults, RIGHT_SEND, badge);
    return process;
}

/* The number in a file of digits; 0 if there is no such file. */
static word_t number_of(const char *name)
{
    struct file file;
    word_t value = 0;

    if (!archive_find(boot_archive, boot_archive_end, name, &file))
        return 0;
    for (word_t i = 0; i < file.bytes && file.start[i] >= '0' && file.start[i] <= '9'; i++)
        value = value * 10 + (file.start[i] - (word_t)'0');
    return value;
}

static void start_console(word_t output, word_t input)
{
    struct process console = load("console.elf", 1, 200);

    process_second(&console, 190);
    process_give_device(&console, ROOT_UART_FRAME);
    process_give_line(&console, UART_IRQ);
    process_give(&console, CONSOLE_OUTPUT, output, RIGHT_RECEIVE, 0);
    process_give(&console, CONSOLE_INPUT, input, RIGHT_RECEIVE, 0);
    process_start(&console, 0);
}

static void start_control(word_t output)
{
    struct process control = load("control.elf", 2, 150);

    process_second(&control, 254);
    process_give_device(&control, ROOT_TIMER_FRAME);
    process_give_line(&control, TIMER_IRQ);
    process_give(&control, OWN_SIGNALS, make(TYPE_NOTIFICATION, 0), RIGHT_SEND | RIGHT_RECEIVE, 0);
    process_give(&control, CONSOLE_OUTPUT, output, RIGHT_SEND, 0);
    process_start(&control, number_of("bound"));
}

static void start_shell(word_t output, word_t input)
{
    struct process shell = load("shell.elf", 3, 100);

    require(make_error(TYPE_UNTYPED, MEMORY_BITS, shell.cnode, OWN_MEMORY), "shell's memory");
    process_give(&shell, CONSOLE_OUTPUT, output, RIGHT_SEND, 0);
    process_give(&shell, CONSOLE_INPUT, input, RIGHT_SEND, 0);
    process_start(&shell, 0);
}

int main(const struct boot_info *boot_info)
{
    word_t output, input;
    struct message m;

    if (frame_map(copy_of(ROOT_UART_FRAME), ROOT_PAGE_DIRECTORY, UART_ADDRESS, RIGHT_WRITE, 0))
        return 2;
    world_init(boot_info);
    faults = make(TYPE_ENDPOINT, 0);
    output = make(TYPE_ENDPOINT, 0);
    input = make(TYPE_ENDPOINT, 0);
    start_console(output, input);
    start_control(output);
    start_shell(output, input);
    m = receive(faults); /* for ever, unless a program is at fault */
    put_string("demo: fault of program ");
    put_number(m.badge);
    put_string(" at ");
    put_hex(m.w[0]);
    put_string("\n");
    return 4;
}
