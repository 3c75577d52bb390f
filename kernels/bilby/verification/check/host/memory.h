/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the host build, with every write found.
 *
 * Three regions: the kernel window, the contents of its memory (the data cache may hold back the
 * rest), and the state of the model.  Pages are write-protected; the first write to one keeps its
 * old contents, so that an operation's changes can be listed and undone, and everything can go back
 * to the state after boot.
 */
#ifndef CHECK_MEMORY_H
#define CHECK_MEMORY_H

#include <stdbool.h>

#include <board.h>
#include <layout.h>

#define VIEW_BASE  0x70000000u /* memory as table walks and fetches see it */
#define MODEL_BASE 0x74000000u
#define MODEL_BYTES 0x00600000u

struct change { word_t address, value; };

void memory_map(void);          /* map and fill with patterns */
void memory_track(void);        /* from here on; this is the state to go back to */
unsigned memory_changes(struct change *list, unsigned maximum);
void memory_commit(void);       /* the next operation begins */
void memory_undo(void);         /* as it was before this operation */
void memory_start(void);        /* this is the state to go back to, from here on */
void memory_reset(void);        /* as it was then, or when tracking began */

bool memory_is_blank(word_t page); /* a page of the window that was zero, and was never written */

static inline word_t *memory_view(word_t window_address)
{
    return (word_t *)(window_address - WINDOW_BASE + VIEW_BASE);
}

static inline bool memory_is_window(word_t address)
{
    return address - WINDOW_BASE < RAM_BYTES;
}

#endif
