/* SPDX-License-Identifier: BSD-2-Clause */
/* See world.h. */
#include "world.h"
#ifdef TIME_CONTEXTS
#include "contexts.h"
#endif

#define DATA_RIGHTS (RIGHT_READ | RIGHT_WRITE)

extern char main_stack_top[];

const struct boot_info *info;
word_t report, park;
word_t asid_pool = ROOT_ASID_POOL;
static word_t next_slot = ROOT_FREE;
static word_t scratch = SCRATCH_BASE;

void require(word_t error, const char *what)
{
    if (error == ERROR_NONE)
        return;
    put_string("Bail out! ");
    put_string(what);
    put_string(": error ");
    put_number(error);
    put_string("\n");
    exit_program(3);
}

word_t new_slots(word_t count)
{
    next_slot += count;
    require(next_slot > 1u << ROOT_RADIX, "slots");
    return next_slot - count;
}

word_t make_error(word_t type, word_t size_bits, word_t cnode, word_t slot)
{
    word_t error = ERROR_NO_MEMORY;

    for (word_t i = 0; i < info->untyped_count && error == ERROR_NO_MEMORY; i++)
        error = untyped_retype(ROOT_UNTYPED + i, type, size_bits, cnode, 0, 0, slot, 1);
    return error;
}

word_t make(word_t type, word_t size_bits)
{
    word_t slot = new_slots(1);

    require(make_error(type, size_bits, ROOT_CNODE, slot), "retype");
    if (SPACES_HAVE_NUMBERS && type == TYPE_PAGE_DIRECTORY)
        require(asid_assign(asid_pool, slot), "number");
    return slot;
}

word_t copy_of(word_t slot)
{
    word_t copy = new_slots(1);

    require(cnode_copy(ROOT_CNODE, copy, 32, ROOT_CNODE, slot, 32, RIGHTS_ALL), "copy");
    return copy;
}

word_t badged(word_t slot, word_t rights, word_t badge)
{
    word_t copy = new_slots(1);

    require(cnode_mint(ROOT_CNODE, copy, 32, ROOT_CNODE, slot, 32, rights, badge), "mint");
    return copy;
}

void *look_at(word_t frame)
{
    word_t address = scratch;

    scratch += 4096;
    if (address % (1u << 20) == 0)
        require(page_table_map(make(TYPE_PAGE_TABLE, 0), ROOT_PAGE_DIRECTORY, address),
                "scratch table");
    require(frame_map(frame, ROOT_PAGE_DIRECTORY, address, DATA_RIGHTS, 0), "scratch");
    return (void *)address;
}

void world_init(const struct boot_info *boot_info)
{
    info = boot_info;
    park = make(TYPE_ENDPOINT, 0);
}

#ifdef TIME_CONTEXTS
#define CONTEXTS_MAX 250 /* of the 256 that can be bound */

static word_t contexts[CONTEXTS_MAX], next_context; /* the last ones; whoever has an older one has long ended */

word_t give_time(word_t tcb)
{
    word_t context = make(TYPE_CONTEXT, 0);

    if (contexts[next_context] != 0)
        context_unbind(contexts[next_context]);
    contexts[next_context] = context;
    next_context = next_context + 1 < CONTEXTS_MAX ? next_context + 1 : 0;
    require(context_configure(context, SLICE, SLICE), "budget");
    require(context_bind(context, tcb), "bind");
    return context;
}

void make_passive(const struct child *child)
{
    require(context_unbind(child->context), "unbind");
}
#else
word_t give_time(word_t tcb)
{
    (void)tcb;
    return 0;
}

void make_passive(const struct child *child)
{
    (void)child;
}
#endif

void world_renew(void)
{
    report = make(TYPE_ENDPOINT, 0);
}

/* Text shared, data copied as it is now. */
static void map_program(const struct child *child)
{
    for (word_t i = 0; i < info->text_frames; i++)
        require(frame_map(copy_of(ROOT_IMAGE + i), child->directory, IMAGE_BASE + (i << 12),
                          RIGHT_READ, MAP_EXECUTE), "child text");
    for (word_t i = info->text_frames; i < info->image_frames; i++) {
        word_t frame = make(TYPE_FRAME_4K, 0);
        word_t address = IMAGE_BASE + (i << 12);
        word_t *to = look_at(frame);

        for (word_t j = 0; j < 1024; j++)
            to[j] = ((volatile word_t *)address)[j];
        require(frame_map(copy_of(frame), child->directory, address, DATA_RIGHTS, 0),
                "child data");
    }
}

static struct child make_objects(void)
{
    struct child child;
    word_t cnode = make(TYPE_CNODE, CHILD_RADIX);

    child.cnode = badged(cnode, RIGHTS_ALL, guard_data_make(32 - CHILD_RADIX, 0));
    child.tcb = make(TYPE_TCB, 0);
    child.directory = make(TYPE_PAGE_DIRECTORY, 0);
    child.table = make(TYPE_PAGE_TABLE, 0);
    require(page_table_map(child.table, child.directory, IMAGE_BASE), "child table");
    map_program(&child);
    give(&child, CHILD_REPORT, report, RIGHTS_ALL, 0);
    give(&child, CHILD_PARK, park, RIGHTS_ALL, 0);
    if (SPACES_HAVE_NUMBERS)
        give(&child, CHILD_POOL, ROOT_ASID_POOL, RIGHTS_ALL, 0);
    give(&child, CHILD_CNODE, child.cnode, RIGHTS_ALL, 0);
    child.context = give_time(child.tcb);
    return child;
}

static void set_going(const struct child *child, void (*run)(word_t), word_t argument,
                      word_t priority)
{
    require(tcb_write_registers(child->tcb, (word_t)run, (word_t)main_stack_top, 0, argument),
            "registers");
    require(tcb_set_priority(child->tcb, priority), "priority");
}

struct child make_child(void (*run)(word_t), word_t argument, word_t priority,
                        word_t fault_handler)
{
    return make_child_in(0, run, argument, priority, fault_handler);
}

struct child make_child_in(word_t space, void (*run)(word_t), word_t argument, word_t priority,
                           word_t fault_handler)
{
    struct child child = make_objects();
    word_t buffer = make(TYPE_FRAME_4K, 0);

    require(frame_map(buffer, child.directory, ROOT_BUFFER, DATA_RIGHTS, 0), "child buffer");
    require(tcb_configure(child.tcb, fault_handler, space ? space : child.cnode,
                          child.directory, buffer, 0), "configure");
    set_going(&child, run, argument, priority);
    return child;
}

/* Without a message buffer. */
struct child make_bare_child(void (*run)(word_t), word_t argument, word_t priority)
{
    struct child child = make_objects();

    require(tcb_configure(child.tcb, 0, child.cnode, child.directory, 0, 0), "configure");
    set_going(&child, run, argument, priority);
    return child;
}

/* A badge of 0 copies. */
void give(struct child *child, word_t slot, word_t from, word_t rights, word_t badge)
{
    word_t error = badge
        ? cnode_mint(child->cnode, slot, 32, ROOT_CNODE, from, 32, rights, badge)
        : cnode_copy(child->cnode, slot, 32, ROOT_CNODE, from, 32, rights);

    require(error, "give");
}

void start(const struct child *child)
{
    require(tcb_resume(child->tcb), "resume");
}

struct child run_child(void (*run)(word_t), word_t argument, word_t priority,
                       word_t endpoint, word_t badge)
{
    struct child child = make_child(run, argument, priority, 0);

    if (endpoint)
        give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, badge);
    start(&child);
    return child;
}

struct message receive(word_t endpoint)
{
    struct message m = { endpoint, 0, { 0, 0, 0, 0 } };

    syscall(SYS_RECEIVE, &m);
    return m;
}

word_t send(word_t number, word_t cap, word_t value)
{
    struct message m = { cap, message_make(1, 0, 0, 0), { value, 0, 0, 0 } };

    syscall(number, &m);
    return m.badge;
}

struct message call(word_t cap, word_t label, word_t value)
{
    struct message m = { cap, message_make(1, 0, 0, label), { value, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    return m;
}

struct message reply_receive(word_t endpoint, word_t label, word_t value)
{
    struct message m = { endpoint, message_make(1, 0, 0, label), { value, 0, 0, 0 } };

    syscall(SYS_REPLY_RECEIVE, &m);
    return m;
}

word_t wait_report(void)
{
    return receive(report).w[0];
}

void tell(word_t value)
{
    send(SYS_SEND, CHILD_REPORT, value);
}

_Noreturn void rest(void)
{
    for (;;)
        receive(CHILD_PARK);
}

_Noreturn void tells(word_t value)
{
    tell(value);
    rest();
}

void let_others_run(void)
{
    run_child(tells, 99, 1, 0, 0);
    wait_report();
}
