/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The concrete machines of simulator.py and dual_issue_simulator.py, compiled: same
 * cycles from the same state and the same draws, which a test compares.
 *
 * native.py describes instructions and states by the structures below; all their fields are
 * 64-bit integers.  Times are cycles, lines are numbered as Geometry.line does.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t num;

enum { REGISTERS = 16, LIST = 18, WAYS = 512, FILLS = 64, BUFFER = 64, TABLE_BITS = 14 };
enum { LOAD = 1, STORE, SWAP };                     /* Instruction.access */
enum { EITHER, OLDER, ALONE };                      /* Instruction.pair */
enum { PASSED = 1, TAKEN = 2, CACHED = 4, ACCESS = 8 }; /* Step.bits */
enum { OUTSTANDING = 3 };
enum { E1 = 1, E2 = 2, DUAL_LONG_AGO = -9 };
enum { RANDOM, ROUND_ROBIN, LRU, FIFO };            /* Cache.policy */

struct operand { num reg, early, late, address, passed; };
struct result { num reg, latency; };

struct instruction {
    num next, waits_flags, conditional, sets_flags, memory, access, bytes;
    num issue, unit, taken, not_taken, flag_distance, updates, base_latency;
    num operation, pair, may_join, flags_late;
    num operands, results, held;
    struct operand operand[LIST];
    struct result result[LIST];
    struct result hold[LIST];
};

struct step { num instruction, bits, address, target; };

struct cache {
    num ways, sets, line_bytes, policy, always_hits, counter, clock;
    num line[WAYS], dirty[WAYS], used[WAYS]; /* by set, then way; line -1: invalid */
};

/* The level-2 cache; nothing is allocated on writes. */
struct level2 {
    num hit, dirty_victims, ways, sets, line_bytes, policy, counter, clock;
    num *line, *dirty, *used; /* as in struct cache */
};

struct machine {
    num dual, aligned, ahead, access, line_rest, dirty_victims, l2_dirty;
    num replay, fetch_restart, buffer_words;
    num clock, free, flags, setter, has_setter, unit, bypassed, branch_unit, second_pipe_free;
    num ready[REGISTERS], unlocked[REGISTERS];
    num fills, fill[FILLS];
    num buffered, buffer[BUFFER];
    num fetched, log_first, log_lines, last_fill;
    uint64_t random;
    struct cache icache, dcache;
    struct level2 *l2; /* 0: absent, or every access misses in it */
};

/* --- random numbers: SplitMix64, as native.SplitMix ------------------------ */

static uint64_t bits(struct machine *m, int count)
{
    uint64_t z = m->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) >> (64 - count);
}

static num below(struct machine *m, num n)
{
    int count = 64 - __builtin_clzll((uint64_t)n);
    num drawn;
    do
        drawn = (num)bits(m, count);
    while (drawn >= n);
    return drawn;
}

static int half(struct machine *m)
{
    return bits(m, 53) < (uint64_t)1 << 52;
}

/* --- arrival of lines: tables that grow, and are emptied in constant time ------ */

struct arriving { num line, at, run; };
struct arrivals { struct arriving *slots; num bits, used, run; };

static struct arrivals code_lines, data_lines;
static num this_run;
static int out_of_memory;

/* The slot of the line, or the free one for it: at least half of them are free. */
static struct arriving *slot_of(const struct arrivals *t, num line)
{
    uint64_t i = (uint64_t)line * 0x9e3779b97f4a7c15u >> (64 - t->bits);
    while (t->slots[i].run == this_run && t->slots[i].line != line)
        i = (i + 1) & (((uint64_t)1 << t->bits) - 1);
    return &t->slots[i];
}

static int grow(struct arrivals *t)
{
    struct arrivals old = *t;
    num bits = old.slots ? old.bits + 1 : TABLE_BITS;
    struct arriving *slots = calloc((size_t)1 << bits, sizeof *slots);
    if (!slots)
        return 0;
    t->slots = slots;
    t->bits = bits;
    for (num i = 0; old.slots && i < (num)1 << old.bits; i++)
        if (old.slots[i].run == this_run)
            *slot_of(t, old.slots[i].line) = old.slots[i];
    free(old.slots);
    return 1;
}

/* The cycle at which the line arrives; valid until the next call for the same table. */
static num *arrival(struct arrivals *t, num line)
{
    static num nowhere;
    struct arriving *slot;
    if (t->run != this_run) {
        t->run = this_run;
        t->used = 0;
    }
    if ((!t->slots || 2 * t->used >= (num)1 << t->bits) && !grow(t)) {
        out_of_memory = 1;
        return &nowhere;
    }
    slot = slot_of(t, line);
    if (slot->run != this_run) {
        *slot = (struct arriving){line, 0, this_run};
        t->used++;
    }
    return &slot->at;
}

/* --- caches and memory ------------------------------------------------------ */

static num max(num a, num b) { return a > b ? a : b; }
static num min(num a, num b) { return a < b ? a : b; }

/* The way of a set that holds the line, or -1. */
static num way_of(const num *set, num ways, num line)
{
    for (num w = 0; w < ways; w++)
        if (set[w] == line)
            return w;
    return -1;
}

/* The way of a set that was used, or filled, before the others. */
static num oldest(const num *used, num ways)
{
    num way = 0;
    for (num w = 1; w < ways; w++)
        if (used[w] < used[way])
            way = w;
    return way;
}

/* The way of a set that is filled next: an invalid one, else the policy's choice. */
static num way_to_fill(struct machine *m, const num *set, const num *used, num ways, num policy,
                       num *counter)
{
    num invalid = way_of(set, ways, -1);
    if (invalid >= 0)
        return invalid;
    if (policy == RANDOM)
        return below(m, ways);
    if (policy == ROUND_ROBIN)
        return *counter = (*counter + 1) % ways;
    return oldest(used, ways);
}

static num find(struct cache *c, num line)
{
    num first = line % c->sets * c->ways, way = way_of(c->line + first, c->ways, line);
    return way < 0 ? -1 : first + way;
}

/* As find; LRU records the use. */
static num use(struct cache *c, num line)
{
    num way = find(c, line);
    if (way >= 0 && c->policy == LRU)
        c->used[way] = ++c->clock;
    return way;
}

/* Returns whether the access hit; sets victim to the dirty line that was replaced, or -1. */
static int cache_load(struct machine *m, struct cache *c, num line, num *victim)
{
    num first = line % c->sets * c->ways, way;
    *victim = -1;
    if (c->always_hits || use(c, line) >= 0)
        return 1;
    way = first + way_to_fill(m, c->line + first, c->used + first, c->ways, c->policy, &c->counter);
    if (c->dirty[way])
        *victim = c->line[way];
    c->line[way] = line;
    c->dirty[way] = 0;
    c->used[way] = ++c->clock;
    return 0;
}

static int cache_store(struct cache *c, num line)
{
    num way = use(c, line);
    if (c->always_hits)
        return 1;
    if (way >= 0)
        c->dirty[way] = 1;
    return way >= 0;
}

static void invalidate(struct cache *c, num line)
{
    num way = find(c, line);
    if (way >= 0) {
        c->line[way] = -1;
        c->dirty[way] = 0;
    }
}

static void invalidate_all(struct cache *c)
{
    for (num w = 0; w < c->sets * c->ways; w++) {
        c->line[w] = -1;
        c->dirty[w] = 0;
    }
}

static num clean_all(struct cache *c)
{
    num count = 0;
    for (num w = 0; w < c->sets * c->ways; w++) {
        count += c->dirty[w] != 0;
        c->dirty[w] = 0;
    }
    return count;
}

/* Cleans a dirty line drawn among all, or none; returns the lines written back. */
static num clean_any(struct machine *m, struct cache *c)
{
    num dirty = 0, drawn, w = 0;
    for (num at = 0; at < c->sets * c->ways; at++)
        dirty += c->dirty[at] != 0;
    if (!dirty || !below(m, 2))
        return 0;
    for (drawn = below(m, dirty); !c->dirty[w] || drawn--; w++)
        ;
    c->dirty[w] = 0;
    return 1;
}

/* Cycles of an access to cached memory, and of writing back a dirty line that L2 evicts. */
static num beyond_l1(struct machine *m)
{
    return m->access + (m->l2_dirty && below(m, 10) < m->l2_dirty ? m->access : 0);
}

/* The place of a line in L2, or -1; LRU records the use. */
static num use_level2(struct level2 *c, num line)
{
    num first = line % c->sets * c->ways, way = way_of(c->line + first, c->ways, line);
    if (way < 0)
        return -1;
    if (c->policy == LRU)
        c->used[first + way] = ++c->clock;
    return first + way;
}

/* Cycles to the first word of a line at an address. */
static num filled(struct machine *m, num addr)
{
    struct level2 *c = m->l2;
    if (!c || addr < 0)
        return beyond_l1(m);
    num line = addr / c->line_bytes, first = line % c->sets * c->ways, dirty, way;
    way = use_level2(c, line);
    if (way >= 0)
        return c->hit;
    way = first + way_to_fill(m, c->line + first, c->used + first, c->ways, c->policy, &c->counter);
    dirty = c->dirty[way] && c->dirty_victims;
    c->line[way] = line;
    c->dirty[way] = 0;
    c->used[way] = ++c->clock;
    return m->access + (dirty ? m->access : 0);
}

/* Cycles to write a word, or a line that L1 evicts. */
static num written(struct machine *m, num addr)
{
    struct level2 *c = m->l2;
    if (!c || addr < 0)
        return beyond_l1(m);
    num way = use_level2(c, addr / c->line_bytes);
    if (way < 0)
        return m->access;
    c->dirty[way] = 1;
    return c->hit;
}

/* Addresses are -1 if they are unknown: the access then misses. */
static num memory_line(struct machine *m, num now, num *complete, num addr)
{
    num first = max(now, m->free) + filled(m, addr);
    *complete = m->free = first + m->line_rest;
    return first;
}

static num memory_write(struct machine *m, num now, num words, num addr)
{
    m->free = max(now, m->free);
    while (words--)
        m->free += written(m, addr);
    return m->free;
}

static num memory_past(struct machine *m, num now, num words)
{
    return m->free = max(now, m->free) + words * m->access;
}

/* --- fetch ------------------------------------------------------------------- */

static void start(struct machine *m, num addr)
{
    m->fetched = addr;
    m->log_lines = 0;
    m->second_pipe_free = 0;
}

static void fetch(struct machine *m, num until, num now)
{
    num missed[64], misses = 0, complete;
    while (m->fetched < until) {
        num line = m->fetched / m->icache.line_bytes;
        if (!m->log_lines || line >= m->log_first + m->log_lines) {
            num dirty;
            if (!m->log_lines)
                m->log_first = line;
            m->log_lines = line - m->log_first + 1;
            if (!cache_load(m, &m->icache, line, &dirty) && misses < 64)
                missed[misses++] = line;
        }
        m->fetched = min(until, (line + 1) * m->icache.line_bytes);
    }
    for (num i = 0; i < misses; i++)
        *arrival(&code_lines, missed[i]) =
            memory_line(m, now, &complete, missed[i] * m->icache.line_bytes) + m->fetch_restart;
}

/* --- coprocessor operations: (CRn, CRm, opc2) in one number -------------------- */

#define CP15(crn, crm, opc2) ((crn) << 8 | (crm) << 4 | (opc2))

static void write_back(struct machine *m, num lines)
{
    if (lines)
        m->unit = max(m->unit, memory_write(m, m->clock, lines, -1));
}

static int maintain(struct machine *m, const struct instruction *i)
{
    switch (i->operation) {
    case CP15(7, 5, 0):
        invalidate_all(&m->icache);
        return 1;
    case CP15(7, 5, 1): case CP15(7, 5, 2): case CP15(9, 0, 0): case CP15(9, 0, 1):
        invalidate(&m->icache, m->log_first + below(m, m->log_lines));
        return 1;
    case CP15(7, 5, 4):
        start(m, i->next);
        return 1;
    case CP15(7, 6, 0):
        invalidate_all(&m->dcache);
        return 1;
    case CP15(7, 7, 0):
        invalidate_all(&m->icache);
        invalidate_all(&m->dcache);
        return 1;
    case CP15(7, 10, 0):
        write_back(m, clean_all(&m->dcache));
        return 1;
    case CP15(7, 10, 1): case CP15(7, 10, 2): case CP15(7, 11, 1):
        write_back(m, clean_any(m, &m->dcache));
        return 1;
    case CP15(7, 10, 4):
        m->clock = max(m->clock, m->free);
        return 1;
    case CP15(7, 14, 1): case CP15(7, 14, 2):
        write_back(m, clean_any(m, &m->dcache));
        invalidate(&m->dcache, m->last_fill);
        return 1;
    case CP15(7, 14, 0):
        write_back(m, clean_all(&m->dcache));
        invalidate_all(&m->dcache);
        return 1;
    }
    num crn = i->operation >> 8, crm = i->operation >> 4 & 15, opc2 = i->operation & 15;
    if (crn == 7)
        return (crm == 0 || crm == 5 || crm == 10) && opc2 >= 4;
    return crn == 1 || crn == 2 || crn == 3 || crn == 8 || crn == 13;
}

/* --- single issue: simulator.Machine -------------------------------------------- */

static num single_read(struct machine *m, num line, num words, int cached, num cycle)
{
    num complete, first, victim, bytes = m->dcache.line_bytes;
    int dirty, before;
    if (!cached) {
        m->fill[m->fills++] = memory_past(m, cycle, words);
        return m->fill[m->fills - 1];
    }
    if (cache_load(m, &m->dcache, line, &victim))
        return *arrival(&data_lines, line);
    dirty = victim >= 0 && m->dirty_victims;
    before = half(m);
    if (dirty && before)
        memory_write(m, cycle, 1, victim * bytes);
    first = memory_line(m, cycle, &complete, line * bytes);
    if (dirty && !before)
        memory_write(m, cycle, 1, victim * bytes);
    m->fill[m->fills++] = complete;
    *arrival(&data_lines, line) = complete;
    m->last_fill = line;
    return first;
}

static void drop_oldest(struct machine *m)
{
    m->buffered--;
    memmove(m->buffer, m->buffer + 1, m->buffered * sizeof m->buffer[0]);
}

static void single_write(struct machine *m, num line, num words, int cached, num cycle)
{
    if (cached && cache_store(&m->dcache, line))
        return;
    for (num w = 0; w < words; w++) {
        while (m->buffered && m->buffer[0] <= cycle)
            drop_oldest(m);
        if (m->buffered >= m->buffer_words) {
            cycle = m->buffer[0];
            drop_oldest(m);
            m->unit = max(m->unit, cycle + 1);
        }
        m->buffer[m->buffered++] =
            cached ? memory_write(m, cycle, 1, line * m->dcache.line_bytes)
                   : memory_past(m, cycle, 1);
    }
}

/* Cycles until all outstanding fills but OUTSTANDING - 1 are done. */
static num room_for_a_fill(struct machine *m, num cycle)
{
    num kept = 0;
    for (num i = 0; i < m->fills; i++) {
        num at = m->fill[i], j = kept;
        if (at <= cycle)
            continue;
        for (; j > 0 && m->fill[j - 1] > at; j--)
            m->fill[j] = m->fill[j - 1];
        m->fill[j] = at;
        kept++;
    }
    m->fills = kept;
    return kept >= OUTSTANDING ? m->fill[kept - OUTSTANDING] : 0;
}

static num single_issue(struct machine *m, const struct instruction *i, int passed, num cycle)
{
    num start = cycle;
    if (i->waits_flags)
        start = max(start, m->flags);
    for (num k = 0; k < i->operands; k++) {
        const struct operand *o = &i->operand[k];
        num at = m->ready[o->reg];
        if (passed ? !o->passed : !o->address)
            continue;
        if (o->early && !(o->reg == m->bypassed && o->address))
            at++;
        else if (!o->early)
            at -= o->late;
        start = max(start, at);
    }
    if (!passed)
        return start;
    if (i->memory)
        start = max(max(start, m->unit), room_for_a_fill(m, cycle));
    for (num k = 0; k < i->results; k++)
        start = max(start, max(m->unlocked[i->result[k].reg], m->ready[i->result[k].reg]));
    if (i->updates >= 0)
        start = max(start, m->unlocked[i->updates]);
    return start;
}

static num single_access(struct machine *m, const struct instruction *i, const struct step *s,
                         num cycle)
{
    num bytes = m->dcache.line_bytes, end = s->address + i->bytes, done = cycle;
    int cached = (s->bits & CACHED) != 0;
    for (num line = s->address / bytes; line <= (end - 1) / bytes; line++) {
        num low = max(s->address, line * bytes), high = min(end, (line + 1) * bytes);
        num words = (high - 1) / 4 - low / 4 + 1;
        if (i->access != STORE)
            done = max(done, single_read(m, line, words, cached, cycle));
        if (i->access == STORE || i->access == SWAP)
            single_write(m, line, words, cached, cycle);
    }
    return done - cycle;
}

static num single_effects(struct machine *m, const struct instruction *i, const struct step *s,
                          num cycle)
{
    num delay = 0;
    if (i->memory || i->unit)
        m->unit = cycle + i->unit;
    if (i->memory && s->bits & ACCESS)
        delay = single_access(m, i, s, cycle);
    for (num k = 0; k < i->results; k++) {
        if (i->result[k].latency >= 0)
            m->ready[i->result[k].reg] = cycle + i->result[k].latency + delay;
        else if (!i->unit)
            m->ready[i->result[k].reg] = cycle + i->issue;
    }
    if (i->updates >= 0) {
        m->ready[i->updates] = max(m->ready[i->updates], cycle + i->base_latency);
        m->bypassed = i->updates;
    }
    for (num k = 0; k < i->held; k++)
        if (i->hold[k].latency >= 0)
            m->unlocked[i->hold[k].reg] =
                max(m->unlocked[i->hold[k].reg], cycle + i->hold[k].latency);
    if (i->sets_flags) {
        m->flags = cycle + i->issue;
        m->setter = m->flags - 1;
        m->has_setter = 1;
    }
    return delay;
}

static int single_step(struct machine *m, const struct instruction *i, const struct step *s)
{
    int passed = s->bits & PASSED;
    num cycle, issue = 1, delay = 0, ready;
    fetch(m, i->next, m->clock);
    ready = *arrival(&code_lines, (i->next - 1) / m->icache.line_bytes);
    cycle = single_issue(m, i, passed, max(m->clock, ready));
    m->bypassed = -1;
    if (passed) {
        issue = i->issue;
        delay = single_effects(m, i, s, cycle);
    }
    num until = i->next + below(m, m->ahead + 1);
    if (i->taken >= 0 && s->bits & TAKEN) {
        fetch(m, until, cycle);
        m->clock = cycle + delay + i->taken;
        if (i->flag_distance >= 0 && m->has_setter)
            m->clock = max(m->clock, m->setter + i->flag_distance);
        return 1;
    }
    m->clock = cycle + (i->not_taken >= 0 ? i->not_taken : issue);
    fetch(m, until, cycle);
    return !(passed && i->operation > 0) || maintain(m, i);
}

/* --- dual issue: dual_issue_simulator.DualIssueMachine ------------------------------ */

static num dual_load(struct machine *m, num line, num words, int cached, num now)
{
    num complete, victim, bytes = m->dcache.line_bytes;
    int dirty, before;
    if (!cached)
        return max(m->replay, memory_past(m, now, words) - now);
    if (cache_load(m, &m->dcache, line, &victim))
        return 0;
    dirty = victim >= 0 && m->dirty_victims;
    before = half(m);
    if (dirty && before)
        memory_write(m, now, 1, victim * bytes);
    memory_line(m, now, &complete, line * bytes);
    if (dirty && !before)
        memory_write(m, now, 1, victim * bytes);
    m->last_fill = line;
    return max(m->replay, complete - now);
}

static num dual_store(struct machine *m, num line, num words, int cached, num now)
{
    num stall = 0;
    if (cached && cache_store(&m->dcache, line))
        return 0;
    for (num w = 0; w < words; w++) {
        while (m->buffered && m->buffer[0] <= now + stall)
            drop_oldest(m);
        if (m->buffered >= m->buffer_words) {
            stall += m->replay + max(0, m->buffer[0] - now - stall);
            drop_oldest(m);
        }
        m->buffer[m->buffered++] =
            cached ? memory_write(m, now + stall, 1, line * m->dcache.line_bytes)
                   : memory_past(m, now + stall, 1);
    }
    return stall;
}

static num dual_access(struct machine *m, const struct instruction *i, const struct step *s,
                       num cycle)
{
    num bytes = m->dcache.line_bytes, end = s->address + i->bytes, stall = 0;
    int cached = (s->bits & CACHED) != 0;
    for (num line = s->address / bytes; line <= (end - 1) / bytes; line++) {
        num low = max(s->address, line * bytes), high = min(end, (line + 1) * bytes);
        num words = (high - 1) / 4 - low / 4 + 1;
        if (i->access != STORE)
            stall += dual_load(m, line, words, cached, cycle + stall);
        if (i->access == STORE || i->access == SWAP)
            stall += dual_store(m, line, words, cached, cycle + stall);
    }
    return stall;
}

static num dual_issue(struct machine *m, const struct instruction *i, num cycle)
{
    for (num k = 0; k < i->operands; k++) {
        const struct operand *o = &i->operand[k];
        num stage = o->early ? E1 : E2 + o->late;
        if (o->passed)
            cycle = max(cycle, m->ready[o->reg] - stage + 1);
    }
    for (num k = 0; k < i->results; k++) {
        cycle = max(cycle, m->unlocked[i->result[k].reg]);
        if (i->conditional)
            cycle = max(cycle, m->ready[i->result[k].reg] - E2 + 1);
    }
    if (i->updates >= 0) {
        cycle = max(cycle, m->unlocked[i->updates]);
        if (i->conditional)
            cycle = max(cycle, m->ready[i->updates] - E2 + 1);
    }
    if (i->waits_flags)
        cycle = max(cycle, m->flags - E2 - i->flags_late + 1);
    if (i->memory || i->unit)
        cycle = max(cycle, m->unit);
    return i->taken >= 0 ? max(cycle, m->branch_unit) : cycle;
}

static void dual_effects(struct machine *m, const struct instruction *i, num cycle)
{
    num last = cycle + i->issue - 1;
    for (num k = 0; k < i->results; k++) {
        num latency = i->result[k].latency;
        if (latency >= 0 || !i->unit)
            m->ready[i->result[k].reg] = cycle + (latency >= 0 ? latency : i->issue) + E1;
        m->unlocked[i->result[k].reg] = last + 1;
    }
    if (i->updates >= 0) {
        m->ready[i->updates] = max(m->ready[i->updates], cycle + i->base_latency + E1);
        m->unlocked[i->updates] = last + 1;
    }
    if (i->unit)
        m->unit = cycle + i->unit;
    if (i->sets_flags)
        m->flags = last + E2;
    if (i->taken >= 0)
        m->branch_unit = last + 1;
}

static void freeze(struct machine *m, num cycles)
{
    if (!cycles)
        return;
    for (int r = 0; r < REGISTERS; r++) {
        m->ready[r] += cycles;
        m->unlocked[r] += cycles;
    }
    m->flags += cycles;
    m->unit += cycles;
    m->branch_unit += cycles;
    m->clock += cycles;
}

enum { ISB = 1 << 12, BARRIER = 1 << 13 }; /* Instruction.operation of ARMv7 barriers */

static int dual_step(struct machine *m, const struct instruction *i, const struct step *s)
{
    int passed = s->bits & PASSED;
    num cycle, ready, stall = 0, slot;
    fetch(m, i->next, m->clock);
    ready = *arrival(&code_lines, (i->next - 1) / m->icache.line_bytes);
    slot = m->second_pipe_free && i->may_join && i->pair != OLDER ? m->clock - 1 : m->clock;
    cycle = dual_issue(m, i, max(slot, ready));
    int joined = cycle < m->clock;
    dual_effects(m, i, cycle);
    m->clock = cycle + i->issue;
    m->second_pipe_free = !joined && i->pair != ALONE;
    fetch(m, i->next + below(m, m->ahead + 1), cycle);
    if (passed && s->bits & ACCESS)
        stall = dual_access(m, i, s, cycle);
    if (i->taken >= 0 && s->bits & TAKEN)
        m->clock = cycle + i->taken;
    freeze(m, stall);
    if (!passed || i->operation <= 0)
        return 1;
    if (i->operation == ISB)
        start(m, i->next);
    else if (i->operation == BARRIER)
        m->clock = max(m->clock, m->free);
    else
        return maintain(m, i);
    return 1;
}

/* --- runs ------------------------------------------------------------------------------ */

static num finished(const struct machine *m)
{
    num late = m->dual ? 1 : 0, end = max(m->clock, max(m->unit, m->free));
    end = max(end, max(m->flags - late, 0));
    for (int r = 0; r < REGISTERS; r++) {
        end = max(end, m->ready[r] - late);
        if (!m->dual)
            end = max(end, m->unlocked[r]);
    }
    return end;
}

/*
 * Executes the steps; the cycle in which everything is finished, or -1 - n where step n is an
 * operation that has no concrete effect, and -1 - count without memory for the arrivals of lines.
 * issued, unless 0, receives the clock after each step.
 */
num simulate(struct machine *m, const struct instruction *instructions, const struct step *steps,
             num count, num first, num *issued)
{
    this_run++;
    out_of_memory = 0;
    start(m, first);
    for (num n = 0; n < count; n++) {
        const struct instruction *i = &instructions[steps[n].instruction];
        if (!(m->dual ? dual_step : single_step)(m, i, &steps[n]))
            return -1 - n;
        if (out_of_memory)
            return -1 - count;
        if (issued)
            issued[n] = m->clock;
        if (steps[n].target >= 0)
            start(m, steps[n].target);
    }
    return finished(m);
}

/* --- runs from drawn states -------------------------------------------------------------- */

/*
 * Limits of an initial state: outstanding accesses, and cycles to results (rule 15).  one_way: in
 * a quarter of the states the L1 caches have one way.
 */
struct bounds { num loads, words, fetches, longest, states, seed, one_way; };

enum { COLD, POLLUTED, MIXED, CONTENTS, FOREIGN = 1 << 23 };

static void draw_cache(struct machine *m, struct cache *c, const num *own, num count, num contents)
{
    c->policy = bits(m, 1) ? ROUND_ROBIN : RANDOM;
    c->counter = below(m, c->ways);
    for (num w = 0; w < c->sets * c->ways; w++) {
        num set = w / c->ways;
        c->line[w] = contents == COLD ? -1 : (FOREIGN + w % c->ways) * c->sets + set;
        c->dirty[w] = contents != COLD && below(m, 10) < 7;
    }
    for (num i = 0; contents == MIXED && i < count; i++) {
        num way = own[i] % c->sets * c->ways + below(m, c->ways);
        if (bits(m, 1) && find(c, own[i]) < 0) {
            c->line[way] = own[i];
            c->dirty[way] = (num)bits(m, 1);
        }
    }
}

/* Own lines are given by their addresses in L1 lines of so many bytes. */
static void own_in_level2(struct machine *m, const num *own, num count, num bytes)
{
    struct level2 *c = m->l2;
    for (num i = 0; i < count; i++) {
        num line = own[i] * bytes / c->line_bytes, first = line % c->sets * c->ways;
        num way = first + below(m, c->ways);
        if (bits(m, 1) && way_of(c->line + first, c->ways, line) < 0) {
            c->line[way] = line;
            c->dirty[way] = (num)bits(m, 1);
        }
    }
}

static void draw_level2(struct machine *m, const num *code, num codes, const num *data, num datas)
{
    struct level2 *c = m->l2;
    num contents = below(m, CONTENTS);
    c->policy = bits(m, 1) ? ROUND_ROBIN : RANDOM;
    c->counter = below(m, c->ways);
    for (num w = 0; w < c->sets * c->ways; w++) {
        c->line[w] = contents == COLD ? -1 : (FOREIGN + w % c->ways) * c->sets + w / c->ways;
        c->dirty[w] = contents != COLD && below(m, 10) < 7;
    }
    if (contents == MIXED) {
        own_in_level2(m, code, codes, m->icache.line_bytes);
        own_in_level2(m, data, datas, m->dcache.line_bytes);
    }
}

static void draw_outstanding(struct machine *m, const struct bounds *b)
{
    num full = (num)bits(m, 1), complete;
    num loads = full ? b->loads : below(m, b->loads + 1);
    num words = full ? b->words : below(m, b->words + 1);
    num fetches = full ? b->fetches : below(m, b->fetches + 1);
    while (loads--) {
        if (m->dirty_victims)
            memory_write(m, 0, 1, -1);
        memory_line(m, 0, &m->fill[m->fills], -1);
        m->fills++;
    }
    while (words--)
        m->buffer[m->buffered++] = memory_write(m, 0, 1, -1);
    while (fetches--)
        memory_line(m, 0, &complete, -1);
    if (below(m, 4) == 0)
        return;
    for (int r = 0; r < REGISTERS - 1; r++) {
        m->ready[r] = full ? b->longest : below(m, b->longest + 1);
        m->unlocked[r] = full ? b->longest : below(m, b->longest + 1);
    }
    m->unit = full ? b->longest : below(m, b->longest + 1);
    m->flags = below(m, min(6, b->longest) + 1);
    m->has_setter = (num)bits(m, 1);
    m->setter = -below(m, 10);
}

/* The state of one case, drawn from its number, so that it can be repeated alone. */
static void draw(struct machine *m, const struct machine *base, const struct bounds *b, num state,
                 const num *code, num codes, const num *data, num datas)
{
    *m = *base;
    m->random = (uint64_t)b->seed * 0xd1342543de82ef95u + (uint64_t)state;
    bits(m, 64);
    if (bits(m, 2) == 0 && b->one_way)
        m->icache.ways = m->dcache.ways = 1;
    draw_cache(m, &m->icache, code, codes, below(m, CONTENTS));
    draw_cache(m, &m->dcache, data, datas, below(m, CONTENTS));
    if (m->l2)
        draw_level2(m, code, codes, data, datas);
    draw_outstanding(m, b);
}

/* Returns the most cycles over all states; sets least to the fewest, at to the slowest state. */
num sample(const struct machine *base, const struct bounds *b,
           const struct instruction *instructions, const struct step *steps, num count, num first,
           const num *code, num codes, const num *data, num datas, num *least, num *at)
{
    static struct machine m;
    num most = -1;
    for (num state = 0; state < b->states; state++) {
        draw(&m, base, b, state, code, codes, data, datas);
        num end = simulate(&m, instructions, steps, count, first, 0);
        if (end < 0)
            return end;
        if (state == 0 || end < *least)
            *least = end;
        if (end > most) {
            most = end;
            *at = state;
        }
    }
    return most;
}
