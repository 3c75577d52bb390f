/* SPDX-License-Identifier: BSD-2-Clause */
/* Retype of as much as there can be, in memory that was used before. */
#include "steer.h"

#define BITS      20 /* of the memory */
#define ROW       32 /* objects of one retype, at most */
#define DIRTY     0x20000000u /* where it is mapped to be written */

static const struct {
    word_t type, bits, count;
} rows[] = {
    { TYPE_FRAME_1M, 0, 1 },  { TYPE_FRAME_64K, 0, 2 },  { TYPE_FRAME_4K, 0, ROW },
    { TYPE_CNODE, 12, 1 },    { TYPE_CNODE, 6, ROW },    { TYPE_TCB, 0, ROW },
    { TYPE_ENDPOINT, 0, ROW }, { TYPE_NOTIFICATION, 0, ROW }, { TYPE_PAGE_TABLE, 0, ROW },
    { TYPE_PAGE_DIRECTORY, 0, 1 }, { TYPE_UNTYPED, 12, ROW },
};

/* Each row is made of the memory of the last one, dirty frames at first. */
static bool large_objects(void)
{
    word_t memory = make(TYPE_UNTYPED, BITS);
    word_t slot = new_slots(ROW);

    for (word_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SAME(untyped_retype(memory, rows[i].type, rows[i].bits, ROOT_CNODE, 0, 0, slot,
                            rows[i].count), 0);
        if (rows[i].type == TYPE_FRAME_1M) {
            SAME(frame_map(slot, ROOT_PAGE_DIRECTORY, DIRTY, RIGHT_READ | RIGHT_WRITE, 0), 0);
            for (word_t at = 0; at < 1u << 20; at += 4)
                *(volatile word_t *)(DIRTY + at) = ~at;
        }
        SAME(cnode_revoke(ROOT_CNODE, memory, 32), 0);
    }
    return true;
}

const struct test creation_tests[] = {
    { large_objects, "rows of every type of object are made in used memory" },
    { NULL, NULL },
};
