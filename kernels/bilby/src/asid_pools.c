/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools of numbers for address spaces: made, asked for a number, deleted. */
#include <kernel.h>
#include <layout_sizes.h>
#include <space.h>

/* The first free place in the table of pools; ASID_POOLS if there is none. */
static word_t free_pool(void)
{
    word_t index = 0;

    /* bound: ASID_POOLS + 1 */
    while (index < ASID_POOLS && asid_pools[index] != NULL)
        index++;
    return index;
}

/*
 * The first free number of a pool; ASID_POOL_ENTRIES if there is none.  Number 0
 * belongs to nobody: it says that there is none.
 */
static word_t free_number(const struct cap *pool)
{
    const struct asid_pool *object = (const struct asid_pool *)asid_pool_cap_object(pool);
    word_t number = asid_pool_cap_index(pool) == 0 ? 1 : 0;

    /* parameter: live_asids + 1 */
    while (number < ASID_POOL_ENTRIES && object->space[number] != NULL)
        number++;
    return number;
}

static void pool_assign(struct slot *pool, struct cap *directory, word_t number)
{
    ((struct asid_pool *)asid_pool_cap_object(&pool->cap))->space[number] =
        (struct page_directory *)page_directory_cap_object(directory);
    page_directory_cap_set_asid(directory,
                                asid_pool_cap_index(&pool->cap) * ASID_POOL_ENTRIES + number);
}

word_t decode_asid_pool(const struct invocation *call)
{
    struct cap *directory;
    word_t number;

    if (call->label != LABEL_ASID_ASSIGN)
        return ERROR_ILLEGAL_OPERATION;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    directory = &call->extra[0]->cap;
    if (cap_type(directory) != CAP_PAGE_DIRECTORY || page_directory_cap_asid(directory) != 0)
        return ERROR_INVALID_CAPABILITY;

    number = free_number(&call->slot->cap);
    if (number == ASID_POOL_ENTRIES)
        return ERROR_NO_NUMBER;

    pool_assign(call->slot, directory, number);
    return ERROR_NONE;
}

static void make_pool(struct slot *untyped, struct slot *to, word_t index)
{
    word_t base = untyped_cap_object(&untyped->cap);
    struct cap cap;

    untyped_cap_set_free(&untyped->cap, sizeof(struct asid_pool) >> 4);
    clear_inside(base, sizeof(struct asid_pool));
    asid_pool_cap_make(&cap, base, index);
    slot_insert(to, &cap, untyped, true);
    asid_pools[index] = (struct asid_pool *)base;
}

/* A pool is made from the whole of an untyped region that nothing else was made from. */
word_t decode_asid_control(const struct invocation *call)
{
    struct slot *untyped, *to;
    word_t index, error;

    if (call->label != LABEL_ASID_MAKE_POOL)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length < 2 || call->extra_count < 2)
        return ERROR_TRUNCATED;

    index = free_pool();
    if (index == ASID_POOLS)
        return ERROR_NO_NUMBER;

    untyped = call->extra[0];
    if (cap_type(&untyped->cap) != CAP_UNTYPED
        || untyped_cap_size_bits(&untyped->cap) != ASID_POOL_SIZE_BITS)
        return ERROR_INVALID_CAPABILITY;

    if (slot_has_child(untyped))
        return ERROR_NO_MEMORY;

    error = cspace_find_empty(&call->extra[1]->cap, message_word(current_thread, 0),
                              message_word(current_thread, 1), &to);
    if (error != ERROR_NONE)
        return error;

    clear_before(untyped);
    make_pool(untyped, to, index);
    return ERROR_NONE;
}

/* Move the directories of a pool that goes to its front; how many there are. */
static word_t pool_gather(struct asid_pool *pool)
{
    word_t live = 0;

    /* bound: ASID_POOL_ENTRIES + 1 */
    for (word_t number = 0; number < ASID_POOL_ENTRIES; number++)
        if (pool->space[number] != NULL)
            pool->space[live++] = pool->space[number];
    return live;
}

/* The last capability of a pool is deleted: its spaces lose their numbers, all at once. */
void asid_delete_pool(const struct cap *pool)
{
    struct asid_pool *object = (struct asid_pool *)asid_pool_cap_object(pool);

    asid_pools[asid_pool_cap_index(pool)] = NULL;
    /* parameter: live_asids + 1 */
    for (word_t left = pool_gather(object); left != 0; left--)
        asid_release(object->space[left - 1]);
}

/* The first pool and the first thread's directory, in place of decode_... */
BOOT_CODE void asid_boot(struct slot *pool, struct slot *directory)
{
    asid_pools[asid_pool_cap_index(&pool->cap)] =
        (struct asid_pool *)asid_pool_cap_object(&pool->cap);
    pool_assign(pool, &directory->cap, free_number(&pool->cap));
}
