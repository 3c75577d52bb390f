/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects, and the capabilities to them (section 2.2, fourth kind).
 *
 *   B1  a capability is of a kind that exists
 *   B2  an object, or the remains of one that is being deleted, stands in the derivation list
 *       below the smallest untyped region that contains it: after its capability, with
 *       nothing between that is not in the region; an object that boot made, or that
 *       outlived its region's capability, is in no region.  The same holds of untyped
 *       regions.
 *   B3  capabilities to one object stand side by side, so that the last is known
 *       by its neighbours; remains stand alone
 *   B4  a line has one interrupt handler capability with no handler before it
 *   B5  a message buffer lies in the frame that its thread keeps, which is RAM that
 *       may be written; without a frame there is no buffer
 *   B6  a thread's own slots hold capabilities of their kind
 *   B7  a guard is no wider than its size says, and level by level at most 32 bits
 *   B8  a line's notification is one that may be signalled
 */
#include <space.h>
#include <timing.h>

#include "invariants.h"

#define UNTYPED_MAX 4096u

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

/* The address is in the region of "parent". */
static bool contains(const struct cap *parent, word_t address)
{
    word_t base = untyped_cap_object(parent);

    return cap_type(parent) == CAP_UNTYPED && address >= base
        && address - base < 1u << untyped_cap_size_bits(parent);
}

/* An untyped region that was made from all or part of another one. */
static bool is_inside(const struct cap *inner, const struct cap *outer)
{
    return cap_type(inner) == CAP_UNTYPED && cap_type(outer) == CAP_UNTYPED
        && contains(outer, untyped_cap_object(inner))
        && untyped_cap_size_bits(inner) <= untyped_cap_size_bits(outer);
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
    TIMING_OBJECTS
        return cnode_cap_object(cap); /* all have it in the same place */
    case CAP_FRAME:
        return frame_cap_device(cap) ? 0 : to_window(frame_cap_base(cap) << 12);
    default:
        return spaces_object_bytes(cap) != 0 ? cnode_cap_object(cap) : 0;
    }
}

/* The start of a slot's object, of an untyped region or of remains too. */
static word_t origin_of(const struct slot *slot)
{
    switch (cap_type(&slot->cap)) {
    case CAP_UNTYPED:
        return untyped_cap_object(&slot->cap);
    case CAP_REMAINS:
        return (word_t)slot;
    default:
        return object_of(&slot->cap);
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
        word_t object = origin_of(universe->slot[i]);

        if (object != 0)
            universe->family_seen[(object - WINDOW_BASE) / 16 / 8] = 0;
    }
}

/* Untyped regions: those around the place of the walk, and all. */
static const struct slot *open[UNTYPED_MAX], *region[UNTYPED_MAX];
static word_t open_count, region_count;

static void find_regions(void)
{
    region_count = 0;
    for (word_t i = 0; i < universe->slot_count; i++) {
        if (cap_type(&universe->slot[i]->cap) != CAP_UNTYPED)
            continue;
        require(region_count < UNTYPED_MAX, "(the checker's own limit on regions)", NULL);
        region[region_count++] = universe->slot[i];
    }
}

static bool is_open(const struct slot *wanted)
{
    for (word_t i = 0; i < open_count; i++)
        if (open[i] == wanted)
            return true;
    return false;
}

/*
 * All regions that contain it are open, and were opened by capabilities before it.  A
 * region made from all of another one has the same extent, and is inside of it.
 */
static void check_origin(const struct slot *slot, word_t object)
{
    word_t containing = 0;

    while (open_count != 0 && !contains(&open[open_count - 1]->cap, object))
        open_count--;
    for (word_t i = 0; i < region_count; i++)
        containing += region[i] != slot && contains(&region[i]->cap, object)
            && (!is_inside(&region[i]->cap, &slot->cap) || is_open(region[i]));
    require(containing == open_count, "B2 an object comes from a region", slot);
    require(cap_type(&slot->cap) != CAP_UNTYPED || open_count == 0
            || is_inside(&slot->cap, &open[open_count - 1]->cap),
            "B2 a region lies in the one that it comes from", slot);
}

static void check_list(const struct slot *head)
{
    const struct slot *prev = NULL;

    open_count = 0;
    for (const struct slot *slot = head; slot != NULL; prev = slot, slot = link_to(slot->next)) {
        word_t object = origin_of(slot);
        bool is_region = cap_type(&slot->cap) == CAP_UNTYPED;

        if (object == 0)
            continue;
        if (!is_region && prev != NULL && object_of(&prev->cap) == object)
            continue;
        check_origin(slot, object);
        require(is_region || first_time(object),
                "B3 capabilities to an object stand side by side", slot);
        if (is_region)
            open[open_count++] = slot;
    }
}

static void check_thread(const struct tcb *thread)
{
    const struct cap *frame = &thread->buffer_frame.cap;
    word_t cspace = cap_type(&thread->cspace.cap), vspace = cap_type(&thread->vspace.cap);
    word_t caller = cap_type(&thread->caller.cap);
    word_t base;

    if (cspace == CAP_REMAINS)
        return; /* the rest of a thread that is being deleted */
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
    find_regions();
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
