/* SPDX-License-Identifier: BSD-2-Clause */
/* See console_client.h. */
#include "console_client.h"
#include "program.h"

static word_t text[MESSAGE_WORDS_MAX]; /* as bytes */
static word_t length;

void put_char(char c)
{
    ((char *)text)[length++] = c;
    if (c == '\n' || length == CONSOLE_BYTES_MAX)
        console_flush();
}

void console_flush(void)
{
    word_t words = (length + 3) / 4;
    struct message m = { CONSOLE_OUTPUT, message_make(words, 0, 0, length),
                         { text[0], text[1], text[2], text[3] } };

    if (length == 0)
        return;
    for (word_t i = MESSAGE_REGISTERS; i < words; i++)
        BUFFER[BUFFER_WORDS + i] = text[i];
    length = 0;
    syscall(SYS_CALL, &m);
}

char console_get(void)
{
    struct message m = { CONSOLE_INPUT, message_make(0, 0, 0, 0), { 0, 0, 0, 0 } };

    console_flush();
    syscall(SYS_CALL, &m);
    return m.badge & SYSCALL_FAILED ? 0 : (char)m.w[0];
}
