/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Untyped memory: retype makes objects out of the unused part.
 *
 * The kernel allocates nothing itself.  Objects of one retype lie side by side,
 * aligned to their size, from the first unused byte on; all is unused when nothing
 * made from the region exists any more.  Making at most RETYPE_OBJECTS_MAX of them
 * is atomic; their memory was cleared before, or is cleared here (clear_*.c).
 *
 * Invariant: no object lies at or above the "free" mark of its untyped region.
 */
#include <retype.h>
#include <kernel_maps.h>
#include <lookup.h>
#include <space.h>

#define WORD_TYPE       0
#define WORD_SIZE_BITS  1
#define WORD_NODE_INDEX 2
#define WORD_NODE_DEPTH 3
#define WORD_FIRST      4
#define WORD_COUNT      5
#define RETYPE_WORDS    6

/* The CNode that receives the capabilities: the one sent, or one below it. */
static word_t find_node(const struct invocation *call, struct cap **node)
{
    word_t depth = message_word(current_thread, WORD_NODE_DEPTH);
    struct slot *slot;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    if (cap_type(&call->extra[0]->cap) != CAP_CNODE)
        return ERROR_INVALID_CAPABILITY;

    if (depth > ADDRESS_BITS)
        return ERROR_RANGE;

    slot = call->extra[0];
    if (depth != 0)
        slot = lookup_find(&call->extra[0]->cap, message_word(current_thread, WORD_NODE_INDEX),
                           depth);
    if (slot == NULL)
        return ERROR_LOOKUP_FAILED;

    if (cap_type(&slot->cap) != CAP_CNODE)
        return ERROR_INVALID_CAPABILITY;

    *node = &slot->cap;
    return ERROR_NONE;
}

/* "count" empty slots of a CNode. */
static word_t find_slots(const struct cap *node, word_t first, word_t count,
                         struct slot **found)
{
    struct slot *slots = (struct slot *)cnode_cap_object(node);
    struct slot *slot = (struct slot *)in_window((word_t)&slots[first], sizeof(struct slot));
    word_t size = 1u << cnode_cap_radix(node);

    if (count < 1 || count > RETYPE_OBJECTS_MAX)
        return ERROR_RANGE;

    if (first >= size || count > size - first)
        return ERROR_RANGE;

    *found = slot;
    /* bound: RETYPE_OBJECTS_MAX + 1: count was checked above */
    for (word_t left = count; left != 0; left--) {
        if (!slot_is_empty(slot))
            return ERROR_SLOT_OCCUPIED;
        slot++;
    }
    return ERROR_NONE;
}

/* The kind of object, and its number: directories one by one, for each is filled in. */
static word_t check_size(struct retype *plan)
{
    plan->object_bits = create_size_bits(plan->type, plan->size_bits);
    if (plan->object_bits == 0)
        return ERROR_INVALID_ARGUMENT;

    if (plan->type == TYPE_PAGE_DIRECTORY && plan->count != 1)
        return ERROR_RANGE;

    return ERROR_NONE;
}

/* The memory: after the mark, aligned, and not beyond the region. */
static word_t check_memory(const struct slot *slot, struct retype *plan)
{
    const struct cap *untyped = &slot->cap;
    word_t bits = untyped_cap_size_bits(untyped);
    word_t mask = (1u << plan->object_bits) - 1;
    word_t used = slot_has_child(slot) ? untyped_cap_free(untyped) << 4 : 0;
    word_t start = (used + mask) & ~mask;
    word_t left;

    if (start >> bits != 0)
        return ERROR_NO_MEMORY;
    left = (1u << bits) - start;
    if (plan->count > left >> plan->object_bits)
        return ERROR_NO_MEMORY;

    plan->base = untyped_cap_object(untyped) + start;
    return ERROR_NONE;
}

static void make_directory(struct slot *untyped, const struct retype *plan)
{
    struct cap cap;

    kernel_maps_inside((struct page_directory *)plan->base);
    space_init((struct page_directory *)plan->base);
    create_cap(&cap, plan->type, plan->base, plan->size_bits);
    slot_insert(plan->slots, &cap, untyped, true);
}

/*
 * Several at once: a row of slots enters the list as it stands.  Their capabilities
 * differ in the object's address, by equal steps, and so do their words.
 */
static void make_objects(struct slot *untyped, const struct retype *plan)
{
    struct cap first, second;

    create_cap(&first, plan->type, plan->base, plan->size_bits);
    create_cap(&second, plan->type, plan->base + (1u << plan->object_bits), plan->size_bits);
    slot_fill_row(plan->slots, plan->count, &first, &second);
    slot_insert_row(plan->slots, plan->count, untyped);
}

static void untyped_retype(struct slot *untyped, const struct retype *plan)
{
    word_t bytes = plan->count << plan->object_bits;
    word_t end = plan->base + bytes - untyped_cap_object(&untyped->cap);

    untyped_cap_set_free(&untyped->cap, end >> 4);
    if (plan->type != TYPE_UNTYPED)
        clear_inside(plan->base, bytes);
    if (plan->type == TYPE_PAGE_DIRECTORY)
        make_directory(untyped, plan);
    else
        make_objects(untyped, plan);
}

word_t decode_untyped(const struct invocation *call)
{
    struct retype plan;
    struct cap *node;
    word_t error;

    if (call->label != LABEL_UNTYPED_RETYPE)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length < RETYPE_WORDS)
        return ERROR_TRUNCATED;

    plan.type = message_word(current_thread, WORD_TYPE);
    plan.size_bits = message_word(current_thread, WORD_SIZE_BITS);
    plan.count = message_word(current_thread, WORD_COUNT);
    error = find_node(call, &node);
    if (error != ERROR_NONE)
        return error;

    error = find_slots(node, message_word(current_thread, WORD_FIRST), plan.count,
                       &plan.slots);
    if (error != ERROR_NONE)
        return error;

    error = check_size(&plan);
    if (error != ERROR_NONE)
        return error;

    if (cap_type(&call->slot->cap) == CAP_DEVICE)
        return device_retype(call->slot, &plan);

    error = check_memory(call->slot, &plan);
    if (error != ERROR_NONE)
        return error;

    kernel_maps_settle(call->slot, plan.type == TYPE_PAGE_DIRECTORY, plan.base);
    clear_before(call->slot);
    if (plan.type == TYPE_PAGE_DIRECTORY)
        kernel_maps_before(call->slot, plan.base);
    untyped_retype(call->slot, &plan);
    return ERROR_NONE;
}
