/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that the kernel can follow a pointer to: slots, threads, objects.
 * Starts at the kernel's variables and goes through CNodes, threads' own slots,
 * derivation links, queues and shadows, with a list of work instead of recursion.
 *
 * A CNode can come to hold the whole family that it belongs to, its region too: then
 * nothing leads there, and nobody can delete it, so it exists for ever, and its mapped
 * frames stay mapped.  It is found because it was there before the operation: a slot is
 * emptied when it is deleted, in an operation before the one that uses its memory
 * again.
 */
#include "invariants.h"

#ifdef CHECK_MEMORY /* RAM that this build keeps from the users */
struct universe *const universe = (struct universe *)CHECK_MEMORY;
_Static_assert(sizeof(struct universe) <= WINDOW_BASE + RAM_BYTES - CHECK_MEMORY, "room");
#else
static struct universe memory;
struct universe *const universe = &memory;
#endif

struct queue { struct tcb *head, *tail; };
extern struct queue ready[READY_QUEUES] __attribute__((weak));

extern struct slot *root_slots; /* boot.c */

/* True the first time. */
static bool mark(unsigned char *seen, word_t address)
{
    word_t unit = (address - WINDOW_BASE) / 16;
    bool first = !(seen[unit / 8] >> unit % 8 & 1);

    seen[unit / 8] |= (unsigned char)(1u << unit % 8);
    return first;
}

static void clear_mark(unsigned char *seen, word_t address)
{
    word_t unit = (address - WINDOW_BASE) / 16;

    seen[unit / 8] &= (unsigned char)~(1u << unit % 8);
}

static void require_address(const void *pointer, const char *invariant)
{
    word_t address = (word_t)pointer;

    require(address % 16 == 0 && address >= WINDOW_BASE && address - WINDOW_BASE < RAM_BYTES,
            invariant, pointer);
}

bool universe_has_slot(const void *slot)
{
    word_t unit = ((word_t)slot - WINDOW_BASE) / 16;

    return (word_t)slot % 16 == 0 && unit < RAM_BYTES / 16
        && (universe->slot_seen[unit / 8] >> unit % 8 & 1);
}

bool universe_has_object(const void *object)
{
    word_t unit = ((word_t)object - WINDOW_BASE) / 16;

    return (word_t)object % 16 == 0 && unit < RAM_BYTES / 16
        && (universe->object_seen[unit / 8] >> unit % 8 & 1);
}

static void add_slot(struct slot *slot)
{
    if (slot == NULL)
        return;
    require_address(slot, "W1 a slot lies in memory, aligned");
    if (!mark(universe->slot_seen, (word_t)slot))
        return;
    require(universe->slot_count < UNIVERSE_SLOTS, "(the checker's own limit on slots)", slot);
    universe->slot[universe->slot_count++] = slot;
}

static bool add_object(struct list *list, const void *object)
{
    require_address(object, "A1 an object lies in memory, aligned");
    if (!mark(universe->object_seen, (word_t)object))
        return false;
    require(list->count < UNIVERSE_OBJECTS, "(the checker's own limit on objects)", object);
    list->at[list->count++] = (word_t)object;
    return true;
}

/* The containers that a thread empties. */
static void add_graves(const struct tcb *owner)
{
    const struct cap *head = &owner->graves;

    for (struct cap *grave = (struct cap *)remains_cap_next(head); grave != head && cap_type(grave) == CAP_REMAINS;
         grave = (struct cap *)remains_cap_next(grave)) {
        word_t before = universe->slot_count;

        add_slot((struct slot *)grave);
        if (universe->slot_count == before)
            return;
    }
}

static void add_thread(struct tcb *thread)
{
    if (thread == NULL || thread == &idle_thread || !add_object(&universe->threads, thread))
        return;
    add_slot(&thread->cspace);
    add_slot(&thread->vspace);
    add_slot(&thread->reply);
    add_slot(&thread->caller);
    add_slot(&thread->buffer_frame);
    add_slot(&thread->limbo);
    if (thread->deleting_next != NULL)
        add_graves(thread);
}

/* Ends with the first thread that is known: the others of its queue are, too. */
static void add_queue(struct tcb *head)
{
    for (struct tcb *thread = head; thread != NULL; thread = thread->wait_next) {
        word_t before = universe->threads.count;

        add_thread(thread);
        if (universe->threads.count == before && thread->wait_next == head)
            return;
    }
}

void universe_add_thread(struct tcb *thread)
{
    add_thread(thread);
}

bool universe_add_context(const void *context)
{
    return add_object(&universe->contexts, context);
}

void universe_add_slot(struct slot *slot)
{
    add_slot(slot);
}

void universe_add_table(struct page_table *table)
{
    if (add_object(&universe->tables, table))
        spaces_reach_from_table(table);
}

void universe_add_directory(struct page_directory *directory)
{
    if (directory != NULL && add_object(&universe->directories, directory))
        spaces_reach_from_directory(directory);
}

/* Slots that are empty and linked to nothing hold W1 to W3 by themselves. */
static bool is_blank(const struct slot *slot)
{
    return cap_type(&slot->cap) == CAP_NULL && slot->prev == 0 && slot->next == 0;
}

#define SLOTS_OF_A_PAGE (4096 / sizeof(struct slot))

static bool is_blank_page(const struct slot *first, word_t count)
{
    return memory_is_blank != NULL && (word_t)first % 4096 == 0 && count >= SLOTS_OF_A_PAGE
        && memory_is_blank((word_t)first);
}

/* Most slots of a large CNode are zero: four at a time. */
static bool are_zero(const struct slot *four)
{
    const word_t *word = (const word_t *)four;
    word_t any = 0;

    for (word_t i = 0; i < 4 * sizeof(struct slot) / sizeof(word_t); i++)
        any |= word[i];
    return any == 0;
}

static void add_cnode_slots(struct slot *first, word_t count)
{
    for (word_t i = 0; i < count;) {
        if (is_blank_page(&first[i], count - i)) {
            i += SLOTS_OF_A_PAGE;
        } else if (i % 4 == 0 && i + 4 <= count && are_zero(&first[i])) {
            i += 4;
        } else {
            if (!is_blank(&first[i]))
                add_slot(&first[i]);
            i++;
        }
    }
}

static void add_what_it_names(struct slot *slot)
{
    const struct cap *cap = &slot->cap;

    switch (cap_type(cap)) {
    case CAP_CNODE:
        if (add_object(&universe->cnodes, (void *)cnode_cap_object(cap)))
            add_cnode_slots((struct slot *)cnode_cap_object(cap), 1u << cnode_cap_radix(cap));
        break;
    case CAP_TCB:
        add_thread((struct tcb *)tcb_cap_object(cap));
        break;
    case CAP_REPLY:
        add_thread((struct tcb *)reply_cap_object(cap));
        break;
    case CAP_ENDPOINT:
        add_object(&universe->endpoints, (void *)endpoint_cap_object(cap));
        break;
    case CAP_NOTIFICATION:
        add_object(&universe->notifications, (void *)notification_cap_object(cap));
        break;
    case CAP_PAGE_TABLE:
        universe_add_table((struct page_table *)page_table_cap_object(cap));
        break;
    case CAP_PAGE_DIRECTORY:
        universe_add_directory((struct page_directory *)page_directory_cap_object(cap));
        break;
    case CAP_FRAME:
        spaces_reach_from_frame(cap);
        break;
    case CAP_REMAINS:
        add_cnode_slots(slot, (remains_cap_last_high(cap) << 10 | remains_cap_last_low(cap)) + 1);
        break;
    default:
        time_reach_from_cap(cap);
        break;
    }
}

static void forget(struct list *list)
{
    for (word_t i = 0; i < list->count; i++)
        clear_mark(universe->object_seen, list->at[i]);
    list->count = 0;
}

static void forget_all(void)
{
    for (word_t i = 0; i < universe->slot_count; i++)
        clear_mark(universe->slot_seen, (word_t)universe->slot[i]);
    universe->slot_count = 0;
    forget(&universe->cnodes);
    forget(&universe->threads);
    forget(&universe->endpoints);
    forget(&universe->notifications);
    forget(&universe->tables);
    forget(&universe->directories);
    forget(&universe->contexts);
}

/*
 * The known objects, the kernel's variables, and the first thread's CNode: its memory is never used
 * for anything else, and when nobody runs only it may lead to the remaining objects.
 */
static void add_roots(void)
{
    for (word_t i = 0; i < universe->known_count; i++)
        if (!is_blank(universe->known[i]))
            add_slot(universe->known[i]);
    add_cnode_slots(root_slots, 1u << ROOT_RADIX);
    for (word_t i = 0; i < IRQ_LINES; i++)
        add_slot(&irq_slots[i]);
    add_slot(&idle_thread.limbo);
    add_graves(&idle_thread);
    for (struct tcb *thread = idle_thread.deleting_next; thread != &idle_thread;
         thread = thread->deleting_next)
        add_thread(thread);
    add_thread(current_thread);
    for (word_t i = 0; ready != NULL && i < READY_QUEUES; i++)
        add_thread(ready[i].head == &idle_thread ? idle_thread.sched_next : ready[i].head);
    universe_add_directory(&kernel_directory);
    spaces_reach();
    time_reach();
}

void universe_know(void)
{
    universe->known_count = universe->slot_count;
    for (word_t i = 0; i < universe->slot_count; i++)
        universe->known[i] = universe->slot[i];
}

void universe_forget(void)
{
    universe->known_count = 0;
}

void universe_find(void)
{
    word_t slots = 0, threads = 0, endpoints = 0, notifications = 0;

    forget_all();
    add_roots();
    while (slots < universe->slot_count || threads < universe->threads.count
           || endpoints < universe->endpoints.count
           || notifications < universe->notifications.count) {
        while (slots < universe->slot_count) {
            struct slot *slot = universe->slot[slots++];

            add_what_it_names(slot);
            add_slot(link_to(slot->prev));
            add_slot(link_to(slot->next));
        }
        while (threads < universe->threads.count) {
            struct tcb *thread = (struct tcb *)universe->threads.at[threads++];

            if (thread->queued)
                add_thread(thread->sched_next);
            time_reach_from_thread(thread);
        }
        while (endpoints < universe->endpoints.count)
            add_queue(((struct endpoint *)universe->endpoints.at[endpoints++])->head);
        while (notifications < universe->notifications.count)
            add_queue(((struct notification *)
                       universe->notifications.at[notifications++])->head);
    }
}
