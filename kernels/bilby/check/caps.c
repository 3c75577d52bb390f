/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What exists and who has access to it (section 2.2, fourth kind).
 *
 *   B1  a capability is of a kind that exists
 *   B2  an object in the region of an untyped capability stands after it in the
 *       derivation list, with nothing between that is not in the region, too
 *   B3  capabilities to one object stand side by side, so that the last is known
 *       by its neighbours
 *   B4  a line has one interrupt handler capability with no handler before it
 *   B5  a message buffer lies in the frame that its thread keeps, which is RAM that
 *       may be written; without a frame there is no buffer
 *   B6  a thread's own slots hold what they are for
 *   B7  a guard is no wider than its size says, and level by level at most 32 bits
 *   B8  a line's notification is one that may be signalled
 */
#include <space.h>

#include "invariants.h"

static void check_kind(const struct slot *slot)
{
    const struct cap *cap = &slot->cap;
    word_t size;

    switch (cap_type(cap)) {
    case CAP_CNODE:
        size = cnode_cap_guard_size(cap);
        require(size + cnode_cap_radix(cap) <= ADDRESS_BITS, "B7 a level has at most 32 bits",
                slot);
        require(cnode_cap_guard(cap) >> size == 0, "B7 a guard fits its size", slot);
        break;
    case CAP_ENDPOINT:
        require(endpoint_cap_badge(cap) >> BADGE_BITS == 0, "B1 a badge has 28 bits", slot);
        break;
    default:
        break;
    }
}

/* "child" was made out of the region of "parent". */
static bool contains(const struct cap *parent, word_t address)
{
    word_t base = untyped_cap_object(parent);

    return cap_type(parent) == CAP_UNTYPED && address >= base
        && address - base < 1u << untyped_cap_size_bits(parent);
}

static word_t object_of(const struct cap *cap)
{
    switch (cap_type(cap)) {
    case CAP_CNODE:
        return cnode_cap_object(cap);
    case CAP_TCB:
        return tcb_cap_object(cap);
    case CAP_ENDPOINT:
        return endpoint_cap_object(cap);
    case CAP_NOTIFICATION:
        return notification_cap_object(cap);
    case CAP_PAGE_TABLE:
        return page_table_cap_object(cap);
    case CAP_PAGE_DIRECTORY:
        return page_directory_cap_object(cap);
    case CAP_FRAME:
        return frame_cap_device(cap) ? 0 : to_window(frame_cap_base(cap) << 12);
    default:
        return spaces_object_bytes(cap) != 0 ? cnode_cap_object(cap) : 0;
    }
}

/* A family of capabilities begins: no other to this object did. */
static bool first_time(word_t object)
{
    word_t unit = (object - WINDOW_BASE) / 16;
    unsigned char bit = (unsigned char)(1u << unit % 8);

    if (universe->family_seen[unit / 8] & bit)
        return false;
    universe->family_seen[unit / 8] |= bit;
    return true;
}

static void forget_families(void)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        word_t object = object_of(&universe->slot[i]->cap);

        if (object != 0)
            universe->family_seen[(object - WINDOW_BASE) / 16 / 8] = 0;
    }
}

/* No untyped capability has this memory. */
static bool is_outside_regions(word_t object)
{
    for (word_t i = 0; i < universe->slot_count; i++)
        if (contains(&universe->slot[i]->cap, object))
            return false;
    return true;
}

/* The region that what follows comes from; without one it belongs to nobody. */
static void check_list(const struct slot *head)
{
    const struct slot *region = NULL;
    const struct slot *prev = NULL;

    for (const struct slot *slot = head; slot != NULL; prev = slot, slot = link_to(slot->next)) {
        word_t object = object_of(&slot->cap);

        if (cap_type(&slot->cap) == CAP_UNTYPED) {
            region = slot;
            continue;
        }
        if (object == 0)
            continue;
        if (prev != NULL && object_of(&prev->cap) == object)
            continue;
        while (region != NULL && !contains(&region->cap, object)) {
            region = link_to(region->prev);
            while (region != NULL && cap_type(&region->cap) != CAP_UNTYPED)
                region = link_to(region->prev);
        }
        require(region != NULL || is_outside_regions(object),
                "B2 an object comes from a region", slot);
        require(first_time(object), "B3 capabilities to an object stand side by side", slot);
    }
}

static void check_thread(const struct tcb *thread)
{
    const struct cap *frame = &thread->buffer_frame.cap;
    word_t cspace = cap_type(&thread->cspace.cap), vspace = cap_type(&thread->vspace.cap);
    word_t caller = cap_type(&thread->caller.cap);
    word_t base;

    if (cspace == CAP_REMAINS)
        return; /* what is left of a thread that is being deleted */
    require(cspace == CAP_NULL || cspace == CAP_CNODE, "B6 the root of a space is a CNode", thread);
    require(vspace == CAP_NULL || vspace == CAP_PAGE_DIRECTORY, "B6 a space is a directory", thread);
    require(caller == CAP_NULL || caller == CAP_REPLY, "B6 a caller is a reply", thread);
    require((thread->buffer != NULL) == (cap_type(frame) == CAP_FRAME),
            "B5 a buffer has a frame", thread);
    if (thread->buffer == NULL)
        return;
    base = to_window(frame_cap_base(frame) << 12);
    require((word_t)thread->buffer >= base
            && (word_t)thread->buffer - base + IPC_BUFFER_BYTES
               <= 1u << (12 + 4 * frame_cap_size(frame))
            && (word_t)thread->buffer % IPC_BUFFER_BYTES == 0,
            "B5 a buffer lies in its frame", thread);
    require(frame_cap_can_write(frame) && !frame_cap_device(frame),
            "B5 a buffer is memory that may be written", thread);
    require(!space_is_mapped(frame), "B5 the kept capability is not mapped", thread);
}

static void check_handlers(void)
{
    word_t first[IRQ_LINES] = { 0 };

    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];
        const struct slot *prev = link_to(slot->prev);
        word_t irq;

        if (cap_type(&slot->cap) != CAP_IRQ_HANDLER)
            continue;
        irq = irq_handler_cap_irq(&slot->cap);
        if (prev == NULL || cap_type(&prev->cap) != CAP_IRQ_HANDLER
            || irq_handler_cap_irq(&prev->cap) != irq)
            require(++first[irq] == 1, "B4 a line has one handler", slot);
    }
    for (word_t irq = 0; irq < IRQ_LINES; irq++)
        require(cap_type(&irq_slots[irq].cap) == CAP_NULL
                || (cap_type(&irq_slots[irq].cap) == CAP_NOTIFICATION
                    && notification_cap_can_send(&irq_slots[irq].cap)),
                "B8 a line signals a notification", &irq_slots[irq]);
}

void check_caps(void)
{
    forget_families();
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];

        check_kind(slot);
        if (cap_type(&slot->cap) != CAP_NULL && link_to(slot->prev) == NULL)
            check_list(slot);
    }
    for (word_t i = 0; i < universe->threads.count; i++)
        check_thread((const struct tcb *)universe->threads.at[i]);
    check_handlers();
}
