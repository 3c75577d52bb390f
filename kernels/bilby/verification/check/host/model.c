/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Caches, TLB, interrupt controller: see model.h.  Invariants:
 *
 *   M1  no operation is left unfinished: cleaned lines were drained, and so was the invalidation of
 *       instructions (prefetched ones are gone after each return to a user, which is an exception
 *       return)
 *   M2  no descriptor that can be walked is dirty in the data cache
 *   M3  the TLB has no translation for a live space number that its tables lack; a flushed one stays
 *       in it until drained
 *   M4  the table base and the space number belong to the current thread's space; to
 *       the kernel's if it has none; a thread whose space was taken from it while it
 *       runs stays where it was, in a space that exists, until the next switch
 *   M5  the space number is 0 while the table base changes
 *   M6  an exclusive reservation does not survive a change of thread
 *   M7  a thread finds its own word in its thread register, which its control block holds
 *       meanwhile; 0 when it runs first
 *   M8  of the mapping with which boot came into the window, nothing is left
 *   M9  where time is a capability: the alarm comes when the running context has used up its budget,
 *       the first of the release queue is due, or abandoned deletions have their turn, within a
 *       slice; at least once in half a turn of the clock, and never at once
 *   M10 the interrupt of the alarm is taken back when it is handled
 */
#include <string.h>

#include <kernel.h>
#include <clock.h>
#include <interrupts.h>
#include <machine.h>
#include <space.h>
#include <timing.h>
#include <vspace.h>

#include "../invariants.h"
#include "memory.h"
#include "model.h"

#define LINES      (RAM_BYTES / LINE_BYTES)
#define CLEANED_MAX 8192u
#define OLD_MAX     64u
#define TLB_MAX    16384u

struct translation { word_t asid, page, descriptor; bool flushed; };

struct model {
    word_t pending[2], enabled[2];
    word_t table_base, asid;
    word_t fault_address, fault_status;
    word_t cleaned_count, old_count, dropped; /* lines, since the last drain */
    word_t old[OLD_MAX];                    /* words that a device has written, and the cache not seen */
    bool exclusive, invalidating, flushing, ringing;
    count_t alarm_at;                       /* in ticks */
    word_t thread_register;                 /* a user keeps its own address there */
    struct tcb *user;                       /* current when the operation began, */
    word_t user_base;                       /* and its table base */
    word_t tlb_count;
    struct translation tlb[TLB_MAX];
    struct { word_t line; word_t content[LINE_BYTES / 4]; } cleaned[CLEANED_MAX];
    word_t forgotten;                       /* times that all instructions were */
    word_t fetched[LINES];                  /* cached if equal to it */
};
_Static_assert(sizeof(struct model) <= MODEL_BYTES, "room for the model");
static struct model *const model = (struct model *)MODEL_BASE;

/* Of the harness: not undone. */
static word_t force_at, force_by = PREEMPT_LINE, tests, taken;
static count_t now;

extern struct page_directory *owner[HARDWARE_ASIDS]; /* asid.c */

/* ---- interrupts ----------------------------------------------------------- */

void interrupts_init(void)
{
    model->enabled[0] = model->enabled[1] = 0;
    model->enabled[PREEMPT_LINE / 32] = 1u << PREEMPT_LINE % 32;
}

bool model_is_pending(void)
{
    return (model->pending[0] & model->enabled[0]) | (model->pending[1] & model->enabled[1]);
}

bool interrupts_pending(void)
{
    if (++tests == force_at)
        model_raise(force_by);
    return model_is_pending();
}

word_t interrupts_take(void)
{
    for (word_t irq = IRQ_LINES; irq-- != 0;) {
        word_t bit = 1u << irq % 32;

        if (model->pending[irq / 32] & model->enabled[irq / 32] & bit) {
            model->pending[irq / 32] &= ~bit;
            taken += irq == force_by;
            model->ringing |= irq == TICK_IRQ;
            return irq;
        }
    }
    return IRQ_LINES;
}

void interrupts_mask(word_t irq)
{
    if (irq != PREEMPT_LINE)
        model->enabled[irq / 32] &= ~(1u << irq % 32);
}

void interrupts_unmask(word_t irq)
{
    model->enabled[irq / 32] |= 1u << irq % 32;
}

void model_raise(word_t irq)
{
    model->pending[irq / 32] |= 1u << irq % 32;
}

bool model_is_masked(word_t irq)
{
    return !(model->enabled[irq / 32] >> irq % 32 & 1);
}

void model_force(word_t test)
{
    force_at = test;
    tests = taken = 0;
}

void model_force_by(word_t irq)
{
    force_by = irq;
}

word_t model_tests(void)
{
    return tests;
}

word_t model_taken(void)
{
    return taken;
}

/* ---- the clock and its alarm ------------------------------------------------ */

void model_set_time(count_t ticks)
{
    now = ticks;
}

word_t clock_ticks(void)
{
    return (word_t)now;
}

void clock_alarm(word_t ticks)
{
    model->alarm_at = now + ticks;
}

void clock_quiet(void)
{
    model->ringing = false;
}

void clock_start(void)
{
    model->ringing = false;
}

/* ---- caches ---------------------------------------------------------------- */

void machine_clean_line(const volatile void *address)
{
    word_t line = (word_t)address & ~(LINE_BYTES - 1);

    if (!memory_is_window(line))
        check_failed("M1 a line outside memory is cleaned", line);
    if (model->cleaned_count == CLEANED_MAX)
        check_failed("M1 too many lines wait to be drained", line);
    model->cleaned[model->cleaned_count].line = line;
    memcpy(model->cleaned[model->cleaned_count++].content, (void *)line, LINE_BYTES);
}

/* Dirty data of the line goes to memory; old data is dropped. */
void machine_clean_and_forget_line(const volatile void *address)
{
    word_t line = (word_t)address & ~(LINE_BYTES - 1);
    word_t left = 0;

    for (word_t i = 0; i < model->old_count; i++) {
        if ((model->old[i] & ~(LINE_BYTES - 1)) == line)
            *(word_t *)model->old[i] = *memory_view(model->old[i]);
        else
            model->old[left++] = model->old[i];
    }
    model->old_count = left;
    machine_clean_line(address);
}

void model_device_writes(word_t address, word_t value)
{
    if (model->old_count == OLD_MAX)
        check_failed("(the model's own limit on what devices write)", address);
    *memory_view(address) = value;
    model->old[model->old_count++] = address;
}

static void finish_flushes(void)
{
    word_t left = 0;

    if (!model->flushing)
        return;
    for (word_t i = 0; i < model->tlb_count; i++)
        if (!model->tlb[i].flushed)
            model->tlb[left++] = model->tlb[i];
    model->tlb_count = left;
    model->flushing = false;
}

void machine_drain(void)
{
    for (word_t i = 0; i < model->cleaned_count; i++)
        memcpy(memory_view(model->cleaned[i].line), model->cleaned[i].content, LINE_BYTES);
    model->cleaned_count = 0;
    model->dropped = 0;
    model->invalidating = false;
    finish_flushes();
}

/* Prefetched instructions are not modelled: every return to a user forgets them. */
void machine_forget_instructions(void)
{
    model->forgotten++;
    model->invalidating = true;
}

void machine_forget_line(const void *address)
{
    if (!memory_is_window((word_t)address))
        check_failed("M1 a line outside memory is dropped", (word_t)address);
    if (model->dropped++ > CHUNK_BYTES / LINE_BYTES)
        check_failed("M1 more than a chunk is dropped in one go", (word_t)address);
    model->fetched[((word_t)address - WINDOW_BASE) / LINE_BYTES] = 0;
    model->invalidating = true;
}

/* New memory: zero, in memory and not only in the cache; nothing older can be executed. */
bool model_is_published(word_t window, word_t bytes)
{
    for (word_t at = window; at < window + bytes; at += 4)
        if (*(word_t *)at != 0)
            return false;
    return model_is_clean(window, bytes) && model_is_forgotten(window, bytes);
}

/* The data cache and memory agree. */
bool model_is_clean(word_t window, word_t bytes)
{
    return memcmp((void *)window, memory_view(window), bytes) == 0;
}

/* Nothing of it is in the instruction cache. */
bool model_is_forgotten(word_t window, word_t bytes)
{
    for (word_t at = window & ~(LINE_BYTES - 1); at < window + bytes; at += LINE_BYTES)
        if (model->fetched[(at - WINDOW_BASE) / LINE_BYTES] == model->forgotten)
            return false;
    return true;
}

/* ---- TLB and space ----------------------------------------------------------- */

void machine_tlb_flush_asid(word_t asid)
{
    for (word_t i = 0; i < model->tlb_count; i++) {
        model->tlb[i].flushed |= model->tlb[i].asid == asid;
        model->flushing |= model->tlb[i].flushed;
    }
}

/* All of it; a translation to forget can be walked until it is drained. */
void machine_tlb_flush(void)
{
    if (model->cleaned_count != 0)
        check_failed("M2 the TLB is flushed before memory is as it shall be", 0);
    model->tlb_count = 0;
}

/* One call stands for the sequence; M5 requires a space number of 0 in between. */
void machine_switch_space(word_t table_base, word_t asid)
{
    machine_drain();
    if (asid == 0)
        check_failed("M5 a user space runs under number 0", table_base);
    model->table_base = table_base;
    model->asid = asid;
}

void machine_leave_thread(word_t *kept)
{
    *kept = model->thread_register;
}

void machine_enter_thread(word_t *kept)
{
    model->thread_register = *kept;
    model->exclusive = false;
}

word_t machine_data_fault_address(void)
{
    return model->fault_address;
}

word_t machine_data_fault_status(void)
{
    return model->fault_status;
}

word_t machine_prefetch_fault_status(void)
{
    return model->fault_status;
}

void model_set_fault(word_t address, word_t status)
{
    model->fault_address = address;
    model->fault_status = status;
}

/* ---- the hardware while a user runs ------------------------------------------ */

/* The descriptor that a walk of memory finds for a page; 0 if none. */
static word_t walk(word_t directory, word_t page)
{
    word_t first = memory_view(directory)[page >> 8];
    word_t table = to_window(first & ~0x3ffu);

    if ((first & DESCRIPTOR_TYPE) != DIRECTORY_TABLE)
        return first;
    if (!memory_is_window(table))
        check_failed("M2 a walk leaves memory", first);
    return memory_view(table)[page & 0xff];
}

static void load(word_t page, word_t descriptor)
{
    for (word_t i = 0; i < model->tlb_count; i++)
        if (model->tlb[i].asid == model->asid && model->tlb[i].page == page)
            return;
    if (model->tlb_count == TLB_MAX)
        check_failed("M3 the model's TLB is full", page);
    model->tlb[model->tlb_count++] =
        (struct translation){ model->asid, page, descriptor, false };
}

static void fetch(word_t physical, word_t bytes)
{
    for (word_t at = physical - RAM_BASE; at < physical - RAM_BASE + bytes; at += LINE_BYTES)
        if (at < RAM_BYTES && model->fetched[at / LINE_BYTES] != model->forgotten)
            model->fetched[at / LINE_BYTES] = model->forgotten;
}

/* Everything in the current user space is translated, and executed if it may be. */
static void use_space(word_t directory)
{
    const word_t *descriptor = memory_view(directory);

    for (word_t i = 0; i < WINDOW_BASE >> 20; i++) {
        if (descriptor[i] == 0)
            continue;
        if ((descriptor[i] & DESCRIPTOR_TYPE) != DIRECTORY_TABLE) {
            load(i << 8, descriptor[i]);
            if (!(descriptor[i] & SECTION_NEVER))
                fetch(descriptor[i] & 0xfff00000u, 1u << 20);
            continue;
        }
        for (word_t page = i << 8; page < (i + 1) << 8; page++) {
            word_t entry = walk(directory, page);

            if (entry == 0)
                continue;
            load(page, entry);
            if ((entry & 2) && !(entry & PAGE_SMALL_NEVER))
                fetch(entry & ~0xfffu, 4096);
            else if (!(entry & 2) && !(entry & PAGE_LARGE_NEVER))
                fetch((entry & ~0xffffu) + ((page & 15) << 12), 4096);
        }
    }
}

/* boot.S empties the instruction cache, and runs where RAM is. */
void model_init(void)
{
    model->forgotten = 1;
    model->tlb[model->tlb_count++] = (struct translation){ 0, RAM_BASE >> 12, RAM_BASE, false };
}

/* boot.S wrote it with the caches off. */
void model_know(const void *first, word_t bytes)
{
    memcpy(memory_view((word_t)first), first, bytes);
}

void model_begin(void)
{
    model->user = current_thread;
    model->user_base = model->table_base;
    model->exclusive = true;
    if (current_thread != &idle_thread)
        model->thread_register = (word_t)current_thread;
    if (current_thread != &idle_thread && model->table_base != 0)
        use_space(to_window(model->table_base & ~0x3fffu));
}

/* ---- invariants ------------------------------------------------------------------ */

static void check_clean(word_t first, word_t bytes)
{
    word_t at;

    if (memcmp((void *)first, memory_view(first), bytes) == 0)
        return;
    for (at = first; *(word_t *)at == *memory_view(at); at += 4)
        ;
    check_failed("M2 a descriptor that can be walked is dirty", at);
}

static void check_tables(struct page_directory *directory)
{
    word_t first = (word_t)directory->descriptor;
    word_t number = (word_t)&directory->asid & ~3u; /* inside of an invalid one, perhaps */

    if (number - first < sizeof(directory->descriptor)) {
        check_clean(first, number - first);
        first = number + 4;
        if (memory_view(number)[0] & DESCRIPTOR_TYPE)
            check_failed("M2 the number of a space is walked", number);
    }
    check_clean(first, (word_t)&directory->descriptor[4096] - first);
    for (word_t i = 0; i < WINDOW_BASE >> 20; i++) {
        word_t descriptor = directory->descriptor[i];

        if ((descriptor & DESCRIPTOR_TYPE) == DIRECTORY_TABLE)
            check_clean(to_window(descriptor & ~0x3ffu), 1024);
    }
}

static void check_translations(void)
{
    for (word_t i = 0; i < model->tlb_count; i++) {
        const struct translation *entry = &model->tlb[i];
        struct page_directory *space = owner[entry->asid];

        if (entry->asid == 0)
            check_failed("M8 a translation of boot is left", entry->page << 12);
        if (space != NULL && walk((word_t)space, entry->page) != entry->descriptor)
            check_failed("M3 a stale translation of a live space", entry->page << 12);
    }
}

/* The space that a thread must run in. */
static struct page_directory *space_of(const struct tcb *thread)
{
    const struct cap *cap = &thread->vspace.cap;

    if (cap_type(cap) != CAP_PAGE_DIRECTORY || space_directory(cap) == NULL)
        return &kernel_directory;
    return (struct page_directory *)page_directory_cap_object(cap);
}

static void check_current(void)
{
    const struct tcb *user = model->user;
    struct page_directory *space;
    bool stays;

    if (current_thread != user && universe_has_object(user) && user->machine != (word_t)user)
        check_failed("M7 a thread loses its register", (word_t)user);
    if (current_thread == &idle_thread)
        return;
    space = space_of(current_thread);
    stays = space == &kernel_directory && current_thread == model->user
        && model->table_base == model->user_base && owner[model->asid] != NULL;
    if (stays)
        space = owner[model->asid];
    if (model->asid == 0 || space->asid != model->asid || owner[model->asid] != space
        || (model->table_base & ~0x3fffu) != to_physical((word_t)space))
        check_failed("M4 the hardware is in another space", (word_t)current_thread);
    if (current_thread != model->user && model->exclusive)
        check_failed("M6 a reservation survives a change of thread", (word_t)current_thread);
    if (model->thread_register != 0 && model->thread_register != (word_t)current_thread)
        check_failed("M7 a thread finds the register of another", (word_t)current_thread);
}

#ifdef TIME_CONTEXTS
#define HALF_TURN 0x7fffffffu

static void check_alarm(void)
{
    const struct context *first = release_first();
    int left = running == NULL ? (int)HALF_TURN : (int)running->left;
    count_t wanted = since + (left > 0 ? (word_t)left : 1);

    if (first != NULL && first->due_at < wanted)
        wanted = first->due_at;
    if (delete_is_left() && turn_at < wanted)
        wanted = turn_at;
    if (wanted <= since)
        wanted = since + 1;
    if (delete_is_left() ? turn_at == 0 || turn_at > now + SLICE_TICKS : turn_at != 0)
        check_failed("M9 abandoned deletions have their turn", (word_t)turn_at);
    if (alarm_is_old || since > now || model->alarm_at != wanted)
        check_failed("M9 the alarm comes when it is needed", (word_t)(model->alarm_at - since));
    if (model->ringing)
        check_failed("M10 the alarm still interrupts", 0);
}
#else
static void check_alarm(void)
{
}
#endif

void model_check(void)
{
    if (model->cleaned_count != 0)
        check_failed("M1 cleaned but not drained", model->cleaned[0].line);
    if (model->invalidating)
        check_failed("M1 invalidated but not drained", 0);
    check_current();
    check_clean((word_t)&kernel_directory.descriptor[RAM_BASE >> 20], sizeof(word_t));
    if (kernel_directory.descriptor[RAM_BASE >> 20] != 0)
        check_failed("M8 the mapping of boot is left", RAM_BASE);
    for (word_t number = 1; number < HARDWARE_ASIDS; number++)
        if (owner[number] != NULL)
            check_tables(owner[number]);
    check_translations();
    check_alarm();
}
