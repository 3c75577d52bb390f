/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of the first thread's boot archive, each in an address space and a capability space of
 * its own.  A program is an ELF file for ARM, linked to absolute addresses below LOADER_TOP.
 *
 *     struct process shell;
 *     word_t error = process_load(&shell, &file, 100);
 *
 *     if (error == LOAD_DONE) {
 *         process_give(&shell, CONSOLE_OUTPUT, output, RIGHT_SEND, 0);
 *         process_start(&shell, 0);
 *     }
 *
 * The file may be anything: it is checked before anything is made.  Where memory or slots of the
 * first thread do not suffice, the emulation ends with a line (require() in world.h).
 */
#ifndef USER_LOADER_H
#define USER_LOADER_H

#include "archive.h"
#include "program.h"
#include "world.h"

#define LOADER_TOP 0x001c0000u /* above are the message buffer and devices */

enum load_result {
    LOAD_DONE,
    LOAD_NO_ELF,       /* no ELF file of 32 bits for ARM that can be executed */
    LOAD_DAMAGED,      /* a header, or its segment, is not in the file */
    LOAD_MISPLACED,    /* a segment does not begin at a page, is too high, or overlaps another */
};

struct process {
    word_t thread, second; /* slots of the first thread */
    word_t cnode, directory;
    word_t entry;
};

/* An address space with the program, a thread of this priority; nothing runs yet. */
enum load_result process_load(struct process *process, const struct file *elf, word_t priority);

/* A second thread in the same spaces, without a message buffer; the program starts it. */
void process_second(struct process *process, word_t priority);

/* A copy of a capability of the first thread's, with a badge unless that is 0. */
void process_give(const struct process *process, word_t slot, word_t from, word_t rights,
                  word_t badge);

/* The page of a device, at DEVICE_ADDRESS; and a line that signals OWN_INTERRUPTS. */
void process_give_device(const struct process *process, word_t frame);
void process_give_line(const struct process *process, word_t irq);

void process_start(const struct process *process, word_t argument);

#endif
