/* SPDX-License-Identifier: BSD-2-Clause */
/* The switch from one thread to another. */
#include <kernel.h>
#include <machine.h>
#include <space.h>

/* Its address space; without one, the kernel's own, in which it can only fault. */
static struct page_directory *thread_space(const struct tcb *thread)
{
    const struct cap *cap = &thread->vspace.cap;

    if (cap_type(cap) != CAP_PAGE_DIRECTORY || space_directory(cap) == NULL)
        return &kernel_directory;
    return space_directory(cap);
}

/* Make it current: it is runnable and in no queue.  The idle thread runs in any space. */
void sched_switch(struct tcb *thread)
{
    thread = tcb_at(thread);
    if (thread != &idle_thread)
        asid_switch(thread_space(thread));
    machine_leave_thread(&current_thread->machine);
    machine_enter_thread(&thread->machine);
    current_saved = thread;
    current_thread = thread;
}
