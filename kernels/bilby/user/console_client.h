/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text through the console server, for a program that has CONSOLE_OUTPUT and CONSOLE_INPUT.
 *
 *     put_string("a line\n");          // of bilby.h: one message, at the end of the line
 *     put_string("> ");
 *     console_flush();                 // without an end of line
 *     char c = console_get();          // waits; flushes first
 *
 * A line stands by itself, whoever else writes.  One thread of a program uses these functions.
 * Without the capabilities nothing is written, and console_get() returns 0.
 */
#ifndef USER_CONSOLE_CLIENT_H
#define USER_CONSOLE_CLIENT_H

#include "bilby.h"

#define CONSOLE_BYTES_MAX (MESSAGE_WORDS_MAX * 4u) /* of one message; its label says how many */

void console_flush(void);
char console_get(void);

#endif
