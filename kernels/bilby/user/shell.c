/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shell, less urgent than all others: it makes objects of its own untyped memory, revokes and
 * deletes them, as fast as it can.
 */
#include "console_client.h"
#include "program.h"

#define LINE_MAX   64
#define ENDPOINTS  32
#define BADGES     16
#define ENDPOINT   OWN_FREE                   /* that many */
#define BADGE      (ENDPOINT + ENDPOINTS)     /* that many */
#define CNODE      (BADGE + BADGES)
#define SPACE      (CNODE + 1)                /* a page table and a frame */
#define FRAME      (SPACE + 1)
#define DEPTH      32
#define CNODE_BITS 5

int main(word_t unused);

static bool is_space(char c)
{
    return c == ' ' || c == '\r' || c == '\n';
}

/* A line, as it is typed; false if there is no console. */
static bool read_line(char *line)
{
    word_t length = 0;

    for (;;) {
        char c = console_get();

        if (c == 0)
            return false;
        if (c == '\r' || c == '\n') {
            put_char('\n');
            line[length] = 0;
            return true;
        }
        if ((c == '\b' || c == 0x7f) && length > 0) {
            length--;
            put_string("\b \b");
        } else if (c >= ' ' && c < 0x7f && length < LINE_MAX - 1) {
            line[length++] = c;
            put_char(c);
        }
    }
}

/* The text after a word at the start of a line; null for another word. */
static const char *after(const char *line, const char *word)
{
    while (*word)
        if (*line++ != *word++)
            return NULL;
    if (*line && !is_space(*line))
        return NULL;
    while (is_space(*line))
        line++;
    return line;
}

/* 0 if it is no number, or too large. */
static word_t number(const char *digits)
{
    word_t value = 0;

    for (; *digits >= '0' && *digits <= '9'; digits++) {
        if (value > 99999999)
            return 0;
        value = value * 10 + (word_t)(*digits - '0');
    }
    return *digits == 0 ? value : 0;
}

static word_t make(word_t type, word_t bits, word_t first, word_t count)
{
    return untyped_retype(OWN_MEMORY, type, bits, OWN_CNODE, 0, 0, first, count);
}

/* Endpoints, badges of one of them, all of them in a CNode; that is deleted, then all memory revoked. */
static word_t make_and_delete(void)
{
    word_t error = 0;

    error |= make(TYPE_ENDPOINT, 0, ENDPOINT, ENDPOINTS);
    error |= make(TYPE_CNODE, CNODE_BITS, CNODE, 1);
    for (word_t i = 0; i < BADGES; i++)
        error |= cnode_mint(OWN_CNODE, BADGE + i, DEPTH, OWN_CNODE, ENDPOINT, DEPTH, RIGHTS_ALL,
                            i + 1);
    error |= cnode_revoke(OWN_CNODE, ENDPOINT, DEPTH);
    for (word_t i = 0; i < ENDPOINTS; i++)
        error |= cnode_move(CNODE, i, CNODE_BITS, OWN_CNODE, ENDPOINT + i, DEPTH);
    error |= cnode_delete(OWN_CNODE, CNODE, DEPTH);
    error |= make(TYPE_PAGE_TABLE, 0, SPACE, 1);
    error |= make(TYPE_FRAME_64K, 0, FRAME, 1);
    error |= cnode_revoke(OWN_CNODE, OWN_MEMORY, DEPTH);
    return error;
}

static void stress(const char *argument)
{
    word_t rounds = number(argument);

    if (rounds == 0) {
        put_string("shell: stress needs the number of rounds\n");
        return;
    }
    for (word_t i = 0; i < rounds; i++) {
        word_t error = make_and_delete();

        if (error != 0) {
            put_string("shell: an operation failed\n");
            return;
        }
    }
    put_string("shell: ");
    put_number(rounds);
    put_string(" rounds: each 34 objects made, 16 badges revoked, all deleted\n");
}

int main(word_t unused)
{
    char line[LINE_MAX];

    (void)unused;
    put_string("shell: commands are stress NUMBER, help, exit\n");
    for (;;) {
        const char *argument;

        put_string("> ");
        if (!read_line(line))
            return 2;
        if (line[0] == 0)
            continue;
        argument = after(line, "stress");
        if (argument != NULL)
            stress(argument);
        else if (after(line, "exit"))
            return 0;
        else if (after(line, "help"))
            put_string("stress NUMBER  make, revoke and delete objects so often\n"
                       "exit           end the emulation\n");
        else
            put_string("shell: no such command; help lists them\n");
    }
}
