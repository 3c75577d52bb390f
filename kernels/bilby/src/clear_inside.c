/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects are cleared where they are made, deep inside of retype, in one go, as in
 * 2011.  The loop is as long as the objects.
 */
#include <kernel.h>
#include <machine.h>
#include <pin.h>

/* When nothing made from the region exists any more, all of it is free again. */
void clear_before(struct slot *slot)
{
    if (!slot_has_child(slot))
        untyped_cap_set_free(&slot->cap, 0);
}

void clear_inside(word_t base, word_t bytes)
{
    pin_forget_before();
    /* parameter: object_chunks + 1 */
    for (word_t left = bytes / CHUNK_BYTES; left != 0; left--) {
        create_clear_chunk(base, CHUNK_BYTES);
        pin_forget_after(base, CHUNK_BYTES);
        base += CHUNK_BYTES;
    }
    create_clear_chunk(base, bytes % CHUNK_BYTES);
    pin_forget_after(base, bytes % CHUNK_BYTES);
}

/* The rest for the last chunk is less than one, but at -O1 a proof of that does not end. */
/* fact: loop create.c:72 at most 33 */
