/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hardware address space numbers: 8 bits, tag the TLB entries of user pages.
 *
 * Number 0 belongs to no user space; it is loaded while the table base changes.
 * A space gets the next number in turn when it becomes current without one.  The
 * space that had the number loses it, and the number is flushed from the TLB
 * before reuse.  All of this is constant time.
 *
 * Invariant: owner[n] == d  <=>  d->asid == n, for n != 0.
 */
#include <kernel.h>
#include <machine.h>

#define TABLE_WALK 0x18 /* table walks: outer write-back */

static struct page_directory *owner[HARDWARE_ASIDS];
static word_t last_asid;
static struct page_directory *current_directory;

static void asid_assign(struct page_directory *directory)
{
    word_t asid = last_asid + 1;
    struct page_directory *before;

    if (asid == HARDWARE_ASIDS)
        asid = 1;
    last_asid = asid;
    before = owner[asid % HARDWARE_ASIDS];
    owner[asid % HARDWARE_ASIDS] = directory;
    if (before != NULL)
        before->asid = 0;
    directory->asid = asid;
    machine_tlb_flush_asid(asid);
}

/* Make it the current address space. */
void asid_switch(struct page_directory *directory)
{
    if (directory == current_directory && directory->asid != 0)
        return;
    if (directory->asid == 0)
        asid_assign(directory);
    current_directory = directory;
    machine_switch_space(to_physical((word_t)directory) | TABLE_WALK, directory->asid);
}

/*
 * A mapping was removed: forget the translations of its address space.  They are gone once the
 * write buffer is drained (ARM1136 TRM, section 6.14), before the memory is used again.  Elsewhere
 * the next switch drains it: nobody runs under that number until then.
 */
void asid_flush(const struct page_directory *directory)
{
    if (directory->asid == 0)
        return;
    machine_tlb_flush_asid(directory->asid);
    machine_drain();
}

/* A directory is about to go: leave it if it is in use, and give its number back. */
void asid_release(struct page_directory *directory)
{
    if (directory == current_directory)
        asid_switch(&kernel_directory);
    if (directory->asid == 0)
        return;
    machine_tlb_flush_asid(directory->asid);
    owner[directory->asid] = NULL;
    directory->asid = 0;
}
