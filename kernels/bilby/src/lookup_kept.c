/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preemption point after each address that is looked up; the thread keeps the result, so that the
 * call, made again, does not look it up again.
 *
 * A lookup depends only on the CNode capabilities that it goes through: no other slot is read, and
 * a capability put into an empty slot was on nobody's way.  So it gives the same slot until a CNode
 * capability leaves its slot.  That is always a move, for deletion begins with one: of the
 * capability, or of the last one of the container in which it stands, into which no lookup leads
 * from then on (delete.c).
 *
 * The class of priorities tells whose lookups a move makes invalid.  The slot of a CNode capability
 * is marked with the least class of the threads that looked up a way through it.  A move removes
 * the mark, and invalidates the lookups of threads of that class and above, which "lookups_lost"
 * counts, in 64 bits that no system lives to see overflow.  Copies have no mark.
 *
 * Lookups are kept with their arguments, in the order of the call: addresses in a message
 * buffer, or the thread at the other end, may be others when the call is made again.  Whether
 * they are valid is decided when a call begins: it looks up nothing any more once it has moved
 * a capability.
 *
 * A failed lookup is kept too, though somebody may fill the slot before the call is made again:
 * then it was empty when the call was made first.  So all is forgotten at the end of the call, or
 * when it will not be made again.
 *
 * Invariant: of a thread whose "lookups_at" is the count of its class, the lookups in front of
 * "lookups_end" are the current results of cspace_resolve, except failed ones, and each slot on
 * their ways is marked with its class or a lower one.  Only a thread that can run, and was
 * preempted, keeps any.
 *
 * Interrupts alone cannot keep a call from finishing: each attempt keeps at least one lookup more,
 * of at most LOOKUPS_MAX. A lookup lost when a CNode capability on the way moves, by this call or
 * by a thread that ran in between, is made again, point by point.
 */
#include <kernel.h>
#include <lookup.h>
#include <preemption.h>
#include <resolve.h>

count_t lookups_lost[LOOKUP_CLASSES] __attribute__((aligned(LINE_BYTES)));

/* A CNode capability leaves its slot: nobody keeps a way through it any more. */
void lookup_lose(struct cap *node)
{
    READ_LINE(lookups_lost);
    /* bound: LOOKUP_CLASSES + 1 */
    for (word_t class = LOOKUP_CLASSES - cnode_cap_passed(node); class < LOOKUP_CLASSES; class++)
        lookups_lost[class]++;
    cnode_cap_set_passed(node, 0);
}

/* Its alignment as far as one instruction masks it: more than a line. */
static struct tcb *caller(void)
{
    return (struct tcb *)in_window((word_t)current_thread, sizeof(struct tcb) / 2);
}

/* A place in a thread's row of lookups, which is aligned to twice its size; behind its end it begins again. */
static struct lookup *in_row(const struct lookup *place)
{
    const word_t row = LOOKUPS_MAX * sizeof(struct lookup);

    return (struct lookup *)in_window((word_t)place & ~row, sizeof(struct lookup));
}

/* Kept lookups are from an attempt before this one, or are forgotten. */
void lookup_begin(void)
{
    struct tcb *thread = caller();
    count_t lost = lookups_lost[thread->lookups_class % LOOKUP_CLASSES];

    thread->lookups_next = thread->lookups;
    if (thread->lookups_at == lost)
        return;
    thread->lookups_at = lost;
    thread->lookups_end = NULL;
}

/* Look it up, and keep it; lookups kept behind it belong to another way that the call took. */
static PREEMPTIBLE struct slot *find_and_keep(const struct cap *root, word_t address, word_t bits,
                                              struct lookup *end)
{
    struct lookup *kept = end - 1;
    struct slot *slot = resolve_marking(root, address, bits, LOOKUP_CLASSES - caller()->lookups_class);

    kept->root = (struct cap *)root;
    kept->address = address;
    kept->bits = bits;
    kept->slot = slot;
    caller()->lookups_end = end;
    PREEMPTION_POINT(13);
    return kept->slot;
}

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits)
{
    struct tcb *thread = caller();
    struct lookup *next = in_row(thread->lookups_next) + 1;
    const struct lookup *kept;

    thread->lookups_next = next;
    ONE_REGISTER(next); /* for kept lookups, too */
    kept = next - 1;
    if (next <= thread->lookups_end && kept->root == root && kept->address == address
        && kept->bits == bits)
        return kept->slot;
    return find_and_keep(root, address, bits, next);
}

/*
 * The address with which a call begins that keeps none: whatever the row holds, a path that comes here
 * ends at the test behind the lookup.
 */
void lookup_first(word_t address)
{
    lookup_begin();
    (void)find_and_keep(&caller()->cspace.cap, address, ADDRESS_BITS, caller()->lookups + 1);
}
