/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every directory has the kernel's mappings, 1 KiB of descriptors: copied before the
 * directory is made, with a preemption point after each two lines ("To preempt or not to
 * preempt", section 3.3).
 *
 * The directory does not exist yet: no capability leads to it, nothing walks it, and all
 * directories that exist have all mappings.  Its memory is at the untyped region's "free" mark,
 * aligned; "copied" in the region's capability counts the steps, where no user can write.  The next
 * retype of that region continues, if it makes the same directory; if not, the copies are cleared
 * again, so that all memory from the mark on is zero.
 *
 * Invariant: of memory from the mark on, only the first "copied" steps of the kernel's
 * descriptors of that directory are not zero.
 */
#include <kernel.h>
#include <kernel_maps.h>
#include <layout_sizes.h>
#include <machine.h>
#include <preemption.h>

#define STEP_WORDS (KERNEL_DESCRIPTORS / KERNEL_MAPS_STEPS)
#define LAST_STEP  (KERNEL_MAPS_STEPS - 1)

/* The kernel's descriptors of a directory, from a step on. */
static word_t *step_of(struct page_directory *directory, word_t step)
{
    return &directory->descriptor[4096 - KERNEL_DESCRIPTORS + step * STEP_WORDS];
}

static void copy_step(word_t base, word_t step)
{
    const word_t *from = step_of(&kernel_directory, step);
    word_t *to = step_of((struct page_directory *)base, step);

    /* bound: KERNEL_DESCRIPTOR_LINES / KERNEL_MAPS_STEPS + 1 */
    for (word_t i = 0; i < KERNEL_DESCRIPTOR_LINES / KERNEL_MAPS_STEPS; i++) {
        to = (word_t *)in_window((word_t)to, LINE_BYTES);
        machine_copy_line(to, from);
        machine_clean_line(to);
        to += LINE_BYTES / 4;
        from += LINE_BYTES / 4;
    }
    machine_drain();
}

/* Window address of the directory that was begun: the first place for one from the mark on. */
static word_t directory_begun(const struct cap *untyped)
{
    word_t mask = (1u << PAGE_DIRECTORY_SIZE_BITS) - 1;
    word_t start = ((untyped_cap_free(untyped) << 4) + mask) & ~mask;

    return untyped_cap_object(untyped) + start;
}

/* The object is not the directory that was begun: clear the copied descriptors, last first. */
PREEMPTIBLE void kernel_maps_settle(struct slot *slot, bool is_directory, word_t base)
{
    struct cap *untyped = &slot->cap;

    if (is_directory && base == directory_begun(untyped))
        return;
    /* preempted: 11 */
    while (untyped_cap_copied(untyped) != 0) {
        word_t last = untyped_cap_copied(untyped) - 1;

        create_clear_chunk((word_t)step_of((struct page_directory *)directory_begun(untyped), last),
                           STEP_WORDS * 4);
        untyped_cap_set_copied(untyped, last);
        PREEMPTION_POINT(11);
    }
}

/* All steps but the last. */
PREEMPTIBLE void kernel_maps_before(struct slot *slot, word_t base)
{
    struct cap *untyped = &slot->cap;

    /* preempted: 12 */
    while (untyped_cap_copied(untyped) < LAST_STEP) {
        word_t step = untyped_cap_copied(untyped);

        copy_step(base, step);
        untyped_cap_set_copied(untyped, step + 1);
        PREEMPTION_POINT(12);
    }
    untyped_cap_set_copied(untyped, 0);
}

/* The last step has no point after it: the directory is made at once. */
void kernel_maps_inside(struct page_directory *directory)
{
    copy_step((word_t)directory, LAST_STEP);
}

/* For the first thread's directory. */
BOOT_CODE void kernel_maps_copy(struct page_directory *directory)
{
    /* bound: KERNEL_MAPS_STEPS + 1 */
    for (word_t step = 0; step < KERNEL_MAPS_STEPS; step++)
        copy_step((word_t)directory, step);
}
