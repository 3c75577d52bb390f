/* SPDX-License-Identifier: BSD-2-Clause */
/* Mapping, write protection, and the found writes: see memory.h. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define PAGE 4096u
#define SAVED_MAX 16384u
#define OPEN_MAX 24u /* pages that stay writable from one operation to the next */

struct saved { word_t page; unsigned char *copy; };
struct set { struct saved item[SAVED_MAX]; unsigned count; };

static const struct { word_t base, bytes; } regions[] = {
    { WINDOW_BASE, RAM_BYTES }, { VIEW_BASE, RAM_BYTES }, { MODEL_BASE, MODEL_BYTES },
};
#define REGIONS (sizeof(regions) / sizeof(regions[0]))

extern unsigned char kernel_data_start[], kernel_data_end[];

static struct set since_commit, since_start;
static unsigned char *spare[SAVED_MAX];
static unsigned spare_count;
static bool kept_since_start[1u << 20]; /* by page number */

/* By page of the window. */
static bool zero_at_first[RAM_BYTES / PAGE], written[RAM_BYTES / PAGE], written_at_start[RAM_BYTES / PAGE];

static void stop(const char *why)
{
    perror(why);
    _exit(70);
}

static void map(word_t from, word_t to)
{
    if (from < to && mmap((void *)from, to - from, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
        != (void *)from)
        stop("mapping the memory of the host build");
}

/* The linker put the kernel's variables into the window; the rest is mapped around. */
void memory_map(void)
{
    word_t first = (word_t)kernel_data_start & ~(PAGE - 1);
    word_t last = ((word_t)kernel_data_end + PAGE - 1) & ~(PAGE - 1);

    map(WINDOW_BASE, first);
    map(last, WINDOW_BASE + RAM_BYTES);
    map(VIEW_BASE, VIEW_BASE + RAM_BYTES);
    map(MODEL_BASE, MODEL_BASE + MODEL_BYTES);
    for (word_t at = 0; at < RAM_BYTES; at += 4) {
        word_t address = WINDOW_BASE + at;

        if (address < first || address >= last)
            *(word_t *)address = at * 2654435761u ^ 0x5a5a5a5au;
        *memory_view(address) = at * 2246822519u ^ 0xa5a5a5a5u;
    }
}

static unsigned char *copy_of(word_t page)
{
    unsigned char *copy = spare_count ? spare[--spare_count] : malloc(PAGE);

    if (copy == NULL)
        stop("out of memory");
    memcpy(copy, (void *)page, PAGE);
    return copy;
}

static void keep(struct set *set, word_t page)
{
    if (set->count == SAVED_MAX)
        stop("an operation wrote too much");
    set->item[set->count++] = (struct saved){ page, copy_of(page) };
}

static bool is_tracked(word_t address)
{
    for (unsigned i = 0; i < REGIONS; i++)
        if (address - regions[i].base < regions[i].bytes)
            return true;
    return false;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    word_t page = (word_t)info->si_addr & ~(PAGE - 1);

    (void)context;
    if (!is_tracked(page)) {
        fprintf(stderr, "signal %d: the kernel accessed %p\n", number, info->si_addr);
        _exit(71);
    }
    keep(&since_commit, page);
    if (memory_is_window(page))
        written[(page - WINDOW_BASE) / PAGE] = true;
    if (!kept_since_start[page / PAGE]) {
        kept_since_start[page / PAGE] = true;
        keep(&since_start, page);
    }
    mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static bool is_zero(const word_t *page)
{
    word_t any = 0;

    for (unsigned w = 0; w < PAGE / 4; w++)
        any |= page[w];
    return any == 0;
}

void memory_track(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

    for (word_t i = 0; i < RAM_BYTES / PAGE; i++)
        zero_at_first[i] = is_zero((const word_t *)(WINDOW_BASE + i * PAGE));
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned i = 0; i < REGIONS; i++)
        if (mprotect((void *)regions[i].base, regions[i].bytes, PROT_READ))
            stop("protecting the memory of the host build");
}

static int by_address(const void *a, const void *b)
{
    word_t x = ((const struct saved *)a)->page, y = ((const struct saved *)b)->page;

    return x < y ? -1 : x > y;
}

/* Not memcmp: the sanitizers' version of it refuses to read between variables. */
static bool is_same(const word_t *now, const word_t *then)
{
    word_t difference = 0;

    for (unsigned w = 0; w < PAGE / 4; w++)
        difference |= now[w] ^ then[w];
    return difference == 0;
}

/* Words of the window that differ from their value at the last commit, by address. */
unsigned memory_changes(struct change *list, unsigned maximum)
{
    unsigned count = 0;

    qsort(since_commit.item, since_commit.count, sizeof(struct saved), by_address);
    for (unsigned i = 0; i < since_commit.count; i++) {
        const word_t *now = (const word_t *)since_commit.item[i].page;
        const word_t *then = (const word_t *)since_commit.item[i].copy;

        if (!memory_is_window((word_t)now) || is_same(now, then))
            continue;
        for (unsigned w = 0; w < PAGE / 4; w++) {
            if (now[w] == then[w])
                continue;
            if (count < maximum)
                list[count] = (struct change){ (word_t)&now[w], now[w] };
            count++;
        }
    }
    return count;
}

static void drop(struct set *set, bool restore, bool protect)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (restore) {
            mprotect((void *)set->item[i].page, PAGE, PROT_READ | PROT_WRITE);
            memcpy((void *)set->item[i].page, set->item[i].copy, PAGE);
        }
        if (protect)
            mprotect((void *)set->item[i].page, PAGE, PROT_READ);
        spare[spare_count++] = set->item[i].copy;
    }
    set->count = 0;
}

/*
 * Most operations write to pages that the one before wrote to: these stay writable, with a new copy.
 * To be told of a write costs fifty times as much as to copy and compare a page.
 */
void memory_commit(void)
{
    if (since_commit.count > OPEN_MAX)
        drop(&since_commit, false, true);
    for (unsigned i = 0; i < since_commit.count; i++)
        memcpy(since_commit.item[i].copy, (void *)since_commit.item[i].page, PAGE);
}

void memory_undo(void)
{
    for (unsigned i = 0; i < since_commit.count; i++)
        memcpy((void *)since_commit.item[i].page, since_commit.item[i].copy, PAGE);
    if (since_commit.count > OPEN_MAX)
        drop(&since_commit, false, true);
}

static void forget_start(bool restore)
{
    drop(&since_commit, false, true);
    for (unsigned i = 0; i < since_start.count; i++)
        kept_since_start[since_start.item[i].page / PAGE] = false;
    drop(&since_start, restore, true);
}

void memory_start(void)
{
    forget_start(false);
    memcpy(written_at_start, written, sizeof(written));
}

void memory_reset(void)
{
    forget_start(true);
    memcpy(written, written_at_start, sizeof(written));
}

/* A page of the window that is zero because nobody ever wrote to it. */
bool memory_is_blank(word_t page)
{
    word_t i = (page - WINDOW_BASE) / PAGE;

    return zero_at_first[i] && !written[i];
}
