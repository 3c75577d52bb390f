/*
 * A first user program for a kernel of the seL4 family: it makes the kernel do long operations.
 *
 * The numbers of invocations come from the headers that the kernel's build generated. The program
 * has the kernel create and delete objects, capabilities, mappings and address spaces, threads wait
 * and send, and faults happen, so that recordings of the kernel contain its long paths; then it
 * draws invocations at random. It never uses a result but to go on: an operation that the kernel
 * refuses is a path, too.
 */
typedef unsigned word, word_t;

#include <api/invocation.h>
#include <arch/api/sel4_invocation.h>
#include <arch/api/invocation.h>
#include <arch/api/syscall.h>

enum { TCB = 1, ROOT, SPACE, IRQ_CONTROL, ASID_CONTROL, ASID_POOL, OWN_BUFFER = 10, DOMAIN = 11 };
enum type { UNTYPED, THREAD, ENDPOINT, NOTIFICATION, NODE, PAGE, LARGE, SECTION, SUPERSECTION, TABLE, DIRECTORY };

enum { ALL_RIGHTS = 15, DEPTH = 32, THREADS = 16, STACK = 1024, LONGEST = 120, CACHED = 3, DEEP = 0x55555554 };

struct region {
    word start, end;
};

struct boot_information {
    word extra, node, nodes, tables;
    struct buffer *buffer;
    struct region empty, shared, image, paging, io_spaces, extra_pages;
    word root_bits, domain;
    struct region untyped;
    struct {
        word physical;
        unsigned char padding[2], bits, device;
    } memory[];
};

struct buffer {
    word tag, words[LONGEST], data, capabilities[3], receive_root, receive_index, receive_depth;
};

extern void undefined_instruction(void);
extern word semihosting(word operation, const void *parameter);
extern char start[];

static union {
    struct buffer buffer;
    char page[4096];
} buffers[THREADS] __attribute__((aligned(4096)));
static word stacks[THREADS][STACK] __attribute__((aligned(4096)));
static struct boot_information *boot;
static word next, random_state = ROUNDS;
static word helpers[THREADS];
static word invoked, refused;

/* Called by compiled code. */
void *memset(void *to, int byte, word count)
{
    for (volatile char *next_byte = to; count; count--)
        *next_byte++ = byte;
    return to;
}

static word draw(word below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static void say(const char *text)
{
    semihosting(4, text);
}

/* Prints how many invocations there were, and how many of them the kernel refused. */
static void report(const char *text)
{
    char number[] = "0000 of 0000 refused\n";

    for (word i = 4, rest = refused; i--; rest /= 10)
        number[i] = '0' + rest % 10;
    for (word i = 4, rest = invoked; i--; rest /= 10)
        number[8 + i] = '0' + rest % 10;
    say(text);
    say(number);
    invoked = refused = 0;
}

/* One system call: `number` of the kernel, information, four words; returns the information. */
static word trap(int number, word capability, word information, word words[4])
{
    register word r0 asm("r0") = capability, r1 asm("r1") = information, r2 asm("r2") = words[0];
    register word r3 asm("r3") = words[1], r4 asm("r4") = words[2], r5 asm("r5") = words[3];
    register int r7 asm("r7") = number;

    asm volatile("svc 0" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+r"(r5) : "r"(r7) : "memory");
    words[0] = r2, words[1] = r3, words[2] = r4, words[3] = r5;
    return r1;
}

static word information(word label, word capabilities, word length)
{
    return label << 12 | capabilities << 7 | length;
}

struct invocation {
    word capability, label, length, words[16], capabilities, extra[3];
};

/* Invokes a capability of the first thread; returns the label of the answer, an error if not 0. `SysNBSend`
   has no answer, and does not wait if the capability is one to an endpoint. */
static word invoke(int number, const struct invocation *call)
{
    word words[4] = {call->words[0], call->words[1], call->words[2], call->words[3]};

    for (word i = 4; i < call->length && i < 16; i++)
        boot->buffer->words[i] = call->words[i];
    for (word i = 0; i < call->capabilities; i++)
        boot->buffer->capabilities[i] = call->extra[i];
    word answer = trap(number, call->capability, information(call->label, call->capabilities, call->length), words);
    invoked++;
    refused += number == SysCall && answer >> 12;
    return answer >> 12;
}

#define INVOKE(...) invoke(SysCall, &(struct invocation){__VA_ARGS__})

/* Creates `count` objects in the following free slots; returns the first slot, 0 if refused. */
static word create(word untyped, enum type type, word bits, word count)
{
    if (INVOKE(untyped, UntypedRetype, 6, {type, bits, 0, 0, next, count}, 1, {ROOT}))
        return 0;
    next += count;
    return next - count;
}

static word copy(word root, word to, word from)
{
    return INVOKE(root, CNodeCopy, 5, {to, DEPTH, from, DEPTH, ALL_RIGHTS}, 1, {ROOT});
}

static word mint(word to, word from, word badge)
{
    return INVOKE(ROOT, CNodeMint, 6, {to, DEPTH, from, DEPTH, ALL_RIGHTS, badge}, 1, {ROOT});
}

static void revoke(word slot)
{
    INVOKE(ROOT, CNodeRevoke, 2, {slot, DEPTH});
}

static void delete(word slot)
{
    INVOKE(ROOT, CNodeDelete, 2, {slot, DEPTH});
}

/* Revokes all that comes from an untyped object, so that its slots and memory are free again. */
static void recycle(word untyped, word slots)
{
    revoke(untyped);
    next = slots;
}

static word page_of(const void *address)
{
    return boot->image.start + ((word)address - (word)start) / 4096;
}

/* Starts helper `i` at a function, with an argument. */
static void run(word i, void (*function)(word), word argument)
{
    word stack = (word)&stacks[i][STACK - 2];

    INVOKE(helpers[i], TCBWriteRegisters, 6, {1, 4, (word)function, stack, 0x10, argument});
}

static void configure(word i, word handler, word root)
{
    INVOKE(helpers[i], TCBConfigure, 4, {handler, 0, 0, (word)&buffers[i]}, 3,
           {root, SPACE, page_of(&buffers[i])});
    INVOKE(helpers[i], TCBSetMCPriority, 1, {255}, 1, {TCB});
    INVOKE(helpers[i], TCBSetPriority, 1, {255}, 1, {TCB});
}

static void yield(void)
{
    word none[4] = {0};

    trap(SysYield, 0, 0, none);
}

static void wait_for(word object)
{
    word words[4] = {0};

    trap(SysRecv, object, 0, words);
    for (;;)
        yield();
}

static void send_to(word object)
{
    word words[4] = {1, 2, 3, 4};

    trap(SysSend, object, information(0, 0, LONGEST), words);
    for (;;)
        yield();
}

static void serve(word object)
{
    word words[4] = {0};

    word got = trap(SysRecv, object, 0, words);
    for (;;)
        got = trap(SysReplyRecv, object, information(0, 0, got & 127), words);
}

static void fault(word kind)
{
    static void (*volatile nowhere)(void) = (void (*)(void))0x7000000;
    word words[4] = {0};

    switch (kind) {
    case 0:
        undefined_instruction();
        break;
    case 1:
        *(volatile word *)0x7000000 = 1;
        break;
    case 2:
        nowhere();
        break;
    default:
        trap(kind, 0, 0, words);
    }
    for (;;)
        yield();
}

static void call_deep(word address)
{
    word words[4] = {0};

    for (;;)
        trap(SysCall, address, information(0, 3, LONGEST), words);
}

/* Many capabilities to one object, revoked together. */
static void derive(word untyped, word count)
{
    word slots = next, endpoint = create(untyped, ENDPOINT, 0, 1);

    for (word i = 0; i < count; i++)
        if (i & 1)
            mint(next++, endpoint, i);
        else
            copy(ROOT, next++, endpoint);
    revoke(endpoint);
    recycle(untyped, slots);
}

/* A CNode full of capabilities of many kinds, one of them to itself, deleted by its last one. */
static void delete_nodes(word untyped, word nodes, word bits)
{
    word slots = next, thread = create(untyped, THREAD, 0, 4);
    word outer = create(untyped, NODE, bits, nodes);

    for (word node = outer; outer && node < outer + nodes; node++)
        for (word i = 0; i < 1u << bits; i++)
            INVOKE(node, CNodeCopy, 5, {i, bits, i % 3 ? thread + i % 4 : outer + i % nodes, DEPTH, ALL_RIGHTS},
                   1, {ROOT});
    for (word i = 0; i < 4; i++)
        delete(thread + i);
    for (word i = nodes; i--;)
        delete(outer + i);
    recycle(untyped, slots);
}

static void wait_and_delete(word untyped, enum type type, void (*function)(word))
{
    word slots = next, object = create(untyped, type, 0, 1), badged = next;

    next += THREADS;
    for (word i = 0; i < THREADS; i++) {
        mint(badged + i, object, i & 1 ? 77 : i + 1);
        configure(i, 0, ROOT);
        run(i, function, badged + i);
    }
    for (word i = 0; i < 4; i++)
        yield();
    INVOKE(ROOT, CNodeCancelBadgedSends, 2, {badged + 1, DEPTH});
    for (word i = 0; i < THREADS; i += 3)
        INVOKE(helpers[i], TCBSuspend, 0);
    revoke(object);
    delete(object);
    for (word i = 0; i < THREADS; i++)
        INVOKE(helpers[i], TCBSuspend, 0);
    recycle(untyped, slots);
}

static void exchange(word untyped)
{
    word slots = next, endpoint = create(untyped, ENDPOINT, 0, 1), notification = create(untyped, NOTIFICATION, 0, 1);
    word words[4] = {0};

    configure(0, 0, ROOT);
    INVOKE(helpers[0], TCBBindNotification, 0, {0}, 1, {notification});
    run(0, serve, endpoint);
    yield();
    for (word length = 0; length <= LONGEST; length += 1 + length / 3) {
        boot->buffer->capabilities[0] = endpoint;
        boot->buffer->capabilities[1] = notification;
        boot->buffer->capabilities[2] = endpoint;
        trap(SysCall, endpoint, information(0, length % 4, length), words);
        trap(SysSend, notification, 0, words);
        yield();
    }
    INVOKE(helpers[0], TCBUnbindNotification, 0);
    INVOKE(helpers[0], TCBSuspend, 0);
    recycle(untyped, slots);
}

static void make_faults(word untyped)
{
    word slots = next, endpoint = create(untyped, ENDPOINT, 0, 1), words[4] = {0};

    for (word kind = 0; kind < 8; kind++) {
        word label;

        configure(1, endpoint, ROOT);
        run(1, fault, kind < 4 ? kind : -100 - kind);
        label = trap(SysRecv, endpoint, 0, words);
        trap(SysReply, 0, information(0, 0, kind & 1 ? label & 127 : 0), words);
        INVOKE(helpers[1], TCBSuspend, 0);
    }
    recycle(untyped, slots);
}

/* CNodes of one bit, each in the next one, and an endpoint at the end of 32 levels; the first CNode. */
static word make_levels(word untyped, word *endpoint)
{
    word node = create(untyped, NODE, 1, 32);

    *endpoint = create(untyped, ENDPOINT, 0, 1);
    if (node == 0)
        return 0;
    for (word i = 0; i < 31; i++)
        for (word side = 0; side < 2; side++)
            INVOKE(node + i, CNodeCopy, 5, {side, 1, node + i + 1, DEPTH, ALL_RIGHTS}, 1, {ROOT});
    INVOKE(node + 31, CNodeCopy, 5, {0, 1, *endpoint, DEPTH, ALL_RIGHTS}, 1, {ROOT});
    return node;
}

/* Receives what helper `i` sends or its fault, `times` times, into a slot that takes a capability. */
static void answer(word endpoint, word i, word times)
{
    while (times--) {
        word words[4] = {0};

        boot->buffer->receive_root = ROOT;
        boot->buffer->receive_index = next;
        boot->buffer->receive_depth = DEPTH;
        trap(SysRecv, endpoint, 0, words);
        trap(SysReply, 0, information(0, 0, LONGEST), words);
    }
    INVOKE(helpers[i], TCBSuspend, 0);
}

/* Messages and faults through addresses of 32 levels, with capabilities at such addresses. */
static void look_up_deeply(word untyped)
{
    word slots = next, endpoint, node = make_levels(untyped, &endpoint);

    if (node) {
        for (word i = 0; i < 3; i++)
            buffers[2].buffer.capabilities[i] = DEEP;
        configure(2, DEEP, node);
        run(2, call_deep, DEEP);
        answer(endpoint, 2, 4);
        for (word kind = 0; kind < 8; kind++) {
            run(2, fault, kind < 4 ? kind : -100 - kind);
            answer(endpoint, 2, 1);
        }
        configure(2, 0, ROOT);
    }
    recycle(untyped, slots);
}

static void map_pages(word untyped)
{
    static const struct {
        enum type type;
        word bytes, base;
    } kinds[] = {{PAGE, 1 << 12, 0x1000000}, {LARGE, 1 << 16, 0x2000000}, {SECTION, 1 << 20, 0x4000000}};
    word slots = next;

    for (word kind = 0; kind < 3; kind++) {
        word base = kinds[kind].base, bytes = kinds[kind].bytes;
        word table = create(untyped, TABLE, 0, 1), page = create(untyped, kinds[kind].type, 0, 4);

        if (kind < 2)
            INVOKE(table, ARMPageTableMap, 2, {base, CACHED}, 1, {SPACE});
        for (word i = 0; page && i < 4; i++) {
            INVOKE(page + i, ARMPageMap, 3, {base + i * bytes, 3, CACHED}, 1, {SPACE});
            INVOKE(page + i, ARMPageMap, 3, {base + i * bytes, 2, CACHED}, 1, {SPACE});
            for (word label = ARMPageClean_Data; label <= ARMPageUnify_Instruction; label++)
                INVOKE(page + i, label, 2, {0, bytes > 65536 ? 65536 : bytes});
            INVOKE(page + i, ARMPageGetAddress, 0);
        }
        if (page)
            INVOKE(page, ARMPageUnmap, 0);
        INVOKE(table, ARMPageTableUnmap, 0);
        recycle(untyped, slots);
    }
}

static void make_spaces(word untyped, word small, word count)
{
    word slots = next, pool = next++;

    INVOKE(ASID_CONTROL, ARMASIDControlMakePool, 2, {pool, DEPTH}, 2, {small, ROOT});
    word space = create(untyped, DIRECTORY, 0, count), table = create(untyped, TABLE, 0, count);
    word page = create(untyped, PAGE, 0, count);
    for (word i = 0; space && page && i < count; i++) {
        INVOKE(pool, ARMASIDPoolAssign, 0, {0}, 1, {space + i});
        INVOKE(table + i, ARMPageTableMap, 2, {0x1000000, CACHED}, 1, {space + i});
        INVOKE(page + i, ARMPageMap, 3, {0x1000000, 3, CACHED}, 1, {space + i});
    }
    for (word i = 0; space && i < count / 4; i++)
        delete(space + i);
    revoke(small);
    recycle(untyped, slots);
}

static void take_interrupts(word untyped)
{
    word slots = next, notification = create(untyped, NOTIFICATION, 0, 1), handler = next++;

    INVOKE(IRQ_CONTROL, IRQIssueIRQHandler, 3, {29, handler, DEPTH}, 1, {ROOT});
    INVOKE(handler, IRQSetIRQHandler, 0, {0}, 1, {notification});
    INVOKE(handler, IRQAckIRQ, 0);
    INVOKE(handler, IRQClearIRQHandler, 0);
    delete(handler);
    recycle(untyped, slots);
}

static void manage_threads(word untyped)
{
    word slots = next, notification = create(untyped, NOTIFICATION, 0, 1);

    for (word i = 0; i < THREADS; i++) {
        configure(i, 0, ROOT);
        run(i, wait_for, notification);
        INVOKE(helpers[i], TCBSetPriority, 1, {draw(255)}, 1, {TCB});
        INVOKE(helpers[i], TCBReadRegisters, 2, {1, 18});
        INVOKE(helpers[i], TCBCopyRegisters, 1, {15}, 1, {helpers[(i + 1) % THREADS]});
        INVOKE(helpers[i], TCBSetSpace, 3, {0, 0, 0}, 2, {ROOT, SPACE});
        INVOKE(DOMAIN, DomainSetSet, 1, {0}, 1, {helpers[i]});
        INVOKE(helpers[i], TCBResume, 0);
    }
    for (word i = 0; i < THREADS; i++)
        INVOKE(helpers[i], TCBSuspend, 0);
    recycle(untyped, slots);
}

/* Any operation on any of the objects that it created, with any words. */
static void invoke_at_random(word untyped, word count)
{
    word slots = next;

    for (enum type type = UNTYPED; type <= DIRECTORY; type++)
        if (type != SUPERSECTION)
            create(untyped, type, 4 + draw(4), 3);
    word objects = next;
    for (word i = 0; i < count; i++) {
        struct invocation call = {.capability = slots + draw(objects - slots), .label = draw(nArchInvocationLabels),
                                  .length = draw(16), .capabilities = draw(4)};

        if (draw(4) == 0)
            call.capability = ROOT, call.label = CNodeRevoke + draw(CNodeSaveCaller - CNodeRevoke + 1);
        for (word k = 0; k < 16; k++) {
            static const word near[] = {0, 1, 3, DEPTH, 4, 8, 0x1000000, 4096};

            call.words[k] = draw(3) ? near[draw(8)] : slots + draw(2 * (objects - slots));
        }
        if (call.capability == ROOT && (call.words[0] < slots || call.words[2] < slots || call.words[4] < slots))
            call.words[0] = slots + draw(64), call.words[1] = DEPTH, call.words[2] = slots + draw(64),
            call.words[3] = DEPTH, call.words[4] = ALL_RIGHTS;
        for (word k = 0; k < 3; k++)
            call.extra[k] = draw(2) ? slots + draw(objects - slots) : draw(2) ? ROOT : SPACE;
        invoke(SysNBSend, &call);
    }
    recycle(untyped, slots);
}

/* A frame of 16 MiB: every kind of flush, over the whole frame. */
static void flush_large_frame(word untyped)
{
    word slots = next, frame = create(untyped, SUPERSECTION, 0, 1);

    INVOKE(frame, ARMPageMap, 3, {0x20000000, 3, CACHED}, 1, {SPACE});
    for (word label = ARMPageClean_Data; frame && label <= ARMPageUnify_Instruction; label++)
        INVOKE(frame, label, 2, {0, 1 << 24});
    INVOKE(frame, ARMPageUnmap, 0);
    recycle(untyped, slots);
}

/* As many address spaces as a pool has, and then no pool. */
static void delete_full_pool(word untyped, word small)
{
    word slots = next, pool = next++;

    INVOKE(ASID_CONTROL, ARMASIDControlMakePool, 2, {pool, DEPTH}, 2, {small, ROOT});
    for (word group = 0; group < 4; group++) {
        word space = create(untyped, DIRECTORY, 0, 256);

        for (word i = 0; space && i < 256; i++)
            INVOKE(pool, ARMASIDPoolAssign, 0, {0}, 1, {space + i});
    }
    delete(pool);
    revoke(small);
    recycle(untyped, slots);
}

/* An untyped object of RAM with at least 1 << `least` bytes, 0 if there is none; the smallest. */
static word memory_of(word least)
{
    word found = 0, smallest = 32;

    for (word i = boot->untyped.start; i < boot->untyped.end; i++) {
        word bits = boot->memory[i - boot->untyped.start].bits;

        if (!boot->memory[i - boot->untyped.start].device && bits >= least && bits < smallest)
            found = i, smallest = bits;
    }
    return found;
}

void main(struct boot_information *information_of_boot)
{
    boot = information_of_boot;
    next = boot->empty.start;
    word memory = memory_of(22), parts = create(memory, UNTYPED, 21, 2);
    word small = create(parts, UNTYPED, 12, 1), threads = create(parts, THREAD, 0, THREADS);

    for (word i = 0; i < THREADS; i++)
        helpers[i] = threads + i;
    word untyped = parts + 1;
    flush_large_frame(memory_of(24));
    report("flush_large_frame: ");
    delete_full_pool(memory_of(24), small);
    report("delete_full_pool: ");
    for (word round = 0; round < ROUNDS; round++) {
        derive(untyped, 300);
        report("derive: ");
        delete_nodes(untyped, 4, 6);
        report("delete_nodes: ");
        wait_and_delete(untyped, ENDPOINT, wait_for);
        report("wait_and_delete: ");
        wait_and_delete(untyped, ENDPOINT, send_to);
        report("wait_and_delete: ");
        wait_and_delete(untyped, NOTIFICATION, wait_for);
        report("wait_and_delete: ");
        exchange(untyped);
        report("exchange: ");
        make_faults(untyped);
        report("make_faults: ");
        look_up_deeply(untyped);
        report("look_up_deeply: ");
        map_pages(untyped);
        report("map_pages: ");
        make_spaces(untyped, small, 24);
        report("make_spaces: ");
        take_interrupts(untyped);
        report("take_interrupts: ");
        manage_threads(untyped);
        report("manage_threads: ");
        invoke_at_random(untyped, 400);
        report("invoke_at_random: ");
        say("round\n");
    }
    say("done\n");
    semihosting(0x18, (const void *)0x20026);
    for (;;)
        continue;
}
