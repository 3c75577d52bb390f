/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: faults of user threads, their handlers, and resuming. */
#include "tests.h"
#include <devices.h>

#define HOLE        0x001f0800u /* inside the table, not mapped */
#define HOLE_FRAME  0x001f0000u
#define NO_TABLE    0x40000000u
#define FAULT_SLOT  CHILD_OTHER
#define TRANSLATION_SECTION 5 /* fault status, ARMv6 */
#define TRANSLATION_PAGE    7
#define PERMISSION_PAGE     15
#define PERMISSION_SECTION  13
#define STATUS(value) ((value) & 0xf)
#define WRITE_FAULT   (1u << 11)

/* A child whose faults come to "endpoint" with badge 42. */
static struct child faulting_child(void (*run)(word_t), word_t argument, word_t endpoint)
{
    struct child child = make_child(run, argument, 10, FAULT_SLOT);

    give(&child, FAULT_SLOT, endpoint, RIGHT_SEND, 42);
    start(&child);
    return child;
}

/* Answer a fault with 0 to 3 words. */
static void answer(word_t label, word_t length, word_t pc, word_t sp, word_t cpsr)
{
    struct message m = { 0, message_make(length, 0, 0, label), { pc, sp, cpsr, 0 } };

    syscall(SYS_REPLY, &m);
}

static word_t fault_status(void)
{
    return BUFFER[BUFFER_WORDS + 4];
}

/* ---- data ----------------------------------------------------------------- */

static void read_word(word_t address)
{
    tell(*(volatile word_t *)address);
    rest();
}

static void write_word(word_t address)
{
    *(volatile word_t *)address = 77;
    tell(*(volatile word_t *)address);
    rest();
}

static bool data_fault_resumes(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t *window = look_at(frame);
    struct child child = faulting_child(read_word, HOLE, endpoint);
    struct message m = receive(endpoint);

    window[0x200] = 1234567;
    SAME(m.badge, 42);
    SAME(message_label(m.info), FAULT_DATA_ABORT);
    SAME(message_length(m.info), FAULT_WORDS);
    SAME(m.w[3], HOLE);
    SAME(STATUS(fault_status()), TRANSLATION_PAGE);
    SAME(fault_status() & WRITE_FAULT, 0);
    SAME(m.w[0] >= (word_t)read_word && m.w[0] < (word_t)read_word + 64, true);
    SAME(frame_map(copy_of(frame), child.directory, HOLE_FRAME, RIGHT_READ, 0), 0);
    answer(0, 0, 0, 0, 0);
    SAME(wait_report(), 1234567);
    return true;
}

static bool write_fault_resumes(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = faulting_child(write_word, NO_TABLE, endpoint);
    struct message m = receive(endpoint);

    SAME(message_label(m.info), FAULT_DATA_ABORT);
    SAME(m.w[3], NO_TABLE);
    SAME(STATUS(fault_status()), TRANSLATION_SECTION);
    SAME(fault_status() & WRITE_FAULT, WRITE_FAULT);
    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), child.directory, NO_TABLE), 0);
    answer(0, 0, 0, 0, 0);
    m = receive(endpoint); /* again: now the page is missing */
    SAME(m.w[3], NO_TABLE);
    SAME(STATUS(fault_status()), TRANSLATION_PAGE);
    SAME(frame_map(make(TYPE_FRAME_4K, 0), child.directory, NO_TABLE, RIGHT_WRITE, 0), 0);
    answer(0, 0, 0, 0, 0);
    SAME(wait_report(), 77);
    return true;
}

void tells_sum(word_t value);
void tells_sum(word_t value)
{
    tell(value);
    rest();
}

/* A load of the other byte order that faults. */
void fault_in_order(word_t address);
__asm__(
    ".text\n.syntax unified\n.arm\n.global fault_in_order\n.type fault_in_order, %function\n"
    "fault_in_order:\n"
    "    mov     r6, r0\n"
    "    setend  be\n"
    "    ldr     r0, [r6]\n"
    "    setend  le\n"
    "    ldr     r1, =tells_sum\n"
    "    bx      r1\n"
    "    .ltorg\n");

/* Instructions that several tests use; see below. */
void undefined_arm(word_t value);
extern char undefined_arm_next[];

/* The handler maps what is missing, and writes back as many words of its message. */
static bool goes_on(void (*run)(word_t), word_t words, word_t wanted)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    struct child child = faulting_child(run, HOLE, endpoint);
    struct message m = receive(endpoint);

    SAME(message_label(m.info), FAULT_DATA_ABORT);
    ((word_t *)look_at(frame))[0x200] = 0x03000000;
    SAME(frame_map(copy_of(frame), child.directory, HOLE_FRAME, RIGHT_READ, 0), 0);
    answer(0, words, m.w[0], m.w[1], m.w[2]);
    SAME(wait_report(), wanted);
    return true;
}

static bool byte_order_is_kept(void)
{
    return goes_on(fault_in_order, 3, 3) && goes_on(fault_in_order, 1, 3);
}

#if __ARM_ARCH >= 7
/* A load in an IT block that faults; the last instruction of the block is not to be executed. */
void fault_in_block(word_t address);
__asm__(
    ".text\n.syntax unified\n.arm\n.global fault_in_block\n.type fault_in_block, %function\n"
    "fault_in_block:\n"
    "    mov     r6, r0\n"
    "    ldr     r1, =fault_in_block_thumb\n"
    "    bx      r1\n"
    "    .ltorg\n"
    "    .thumb\n.thumb_func\n.type fault_in_block_thumb, %function\n"
    "fault_in_block_thumb:\n"
    "    movs    r4, #0\n"
    "    cmp     r4, #1\n"
    "    itte    ne\n"
    "    ldrne   r5, [r6]\n"
    "    movne   r5, #3\n"
    "    moveq   r4, #7\n"
    "    adds    r0, r4, r5\n"
    "    ldr     r1, =tells_sum\n"
    "    bx      r1\n"
    "    .ltorg\n"
    "    .arm\n");

static bool it_block_is_kept(void)
{
    return goes_on(fault_in_block, 3, 3) && goes_on(fault_in_block, 1, 3)
        && goes_on(fault_in_block, 0, 3);
}
#endif

/* Bits of cpsr that are the state of an IT block, where the processor has them; of both, Thumb. */
#define IT_STATE 0x0600fc00u
#define THUMB    0x20u
#if __ARM_ARCH >= 7
#define IT_OF_THUMB IT_STATE
#else
#define IT_OF_THUMB 0u
#endif

/* A thread that is not in Thumb state is in no IT block, and on the ARM1136 none can be put in one. */
static bool it_blocks_are_of_thumb_code(void)
{
    struct child child = make_child(read_word, HOLE, 20, 0);
    struct registers r;

    for (word_t state = 0; state < 2; state++) {
        word_t thumb = state ? THUMB : 0;

        SAME(tcb_write_registers(child.tcb, 0x1000, 0, IT_STATE | thumb, 0), ERROR_NONE);
        SAME(tcb_read_registers(child.tcb, &r), ERROR_NONE);
        SAME(r.cpsr & (IT_STATE | THUMB), state ? IT_OF_THUMB | THUMB : 0);
    }
    return true;
}

/* The same of the answer to a fault: the thread goes on outside of any block. */
static bool an_answer_begins_no_block(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    faulting_child(undefined_arm, 5, endpoint);
    m = receive(endpoint);
    answer(0, 3, (word_t)undefined_arm_next, m.w[1], m.w[2] | IT_STATE);
    SAME(wait_report(), 5);
    return true;
}

/* A user may not touch: text for writing, the kernel at all. */
static bool protected_memory(void)
{
    static const struct { word_t address; bool write; word_t status; } tries[] = {
        { IMAGE_BASE, true, PERMISSION_PAGE },
        { ROOT_INFO, true, TRANSLATION_PAGE },
        { 0xf0010000, false, PERMISSION_SECTION },
        { 0xf0010000, true, PERMISSION_SECTION },
        { 0xf0100000, true, PERMISSION_SECTION },
        { KERNEL_DEVICES, false, PERMISSION_PAGE },
        { 0xffff0000, false, PERMISSION_PAGE },
        { 0xfffffffc, true, TRANSLATION_PAGE },
    };

    for (word_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        word_t endpoint = make(TYPE_ENDPOINT, 0);
        struct message m;

        faulting_child(tries[i].write ? write_word : read_word, tries[i].address, endpoint);
        m = receive(endpoint);
        SAME(message_label(m.info), FAULT_DATA_ABORT);
        SAME(m.w[3], tries[i].address);
        SAME(STATUS(fault_status()), tries[i].status);
    }
    return true;
}

/* ---- instructions ------------------------------------------------------------ */

static void landing(word_t value)
{
    tell(value);
    rest();
}

static void jump(word_t address)
{
    ((void (*)(word_t))address)(99);
    rest();
}

static bool prefetch_fault_resumes(void)
{
    static const struct { word_t address, status; } tries[] = {
        { NO_TABLE + 0x100, TRANSLATION_SECTION },
        { HOLE, TRANSLATION_PAGE },
        { ROOT_BUFFER, PERMISSION_PAGE },          /* data is not executed */
        { 0xf0010000, PERMISSION_SECTION },
    };

    for (word_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        word_t endpoint = make(TYPE_ENDPOINT, 0);
        struct message m;

        faulting_child(jump, tries[i].address, endpoint);
        m = receive(endpoint);
        SAME(m.badge, 42);
        SAME(message_label(m.info), FAULT_PREFETCH_ABORT);
        SAME(m.w[0], tries[i].address);
        SAME(m.w[3], tries[i].address);
        SAME(STATUS(fault_status()), tries[i].status);
        answer(0, 1, (word_t)landing, 0, 0);
        SAME(wait_report(), 99);
    }
    return true;
}

void undefined_thumb(word_t value);
extern char undefined_arm_at[], undefined_thumb_at[];
__asm__(
    "    .text\n"
    "    .arm\n"
    "    .global undefined_arm, undefined_arm_at, undefined_arm_next\n"
    "    .type undefined_arm, %function\n"
    "undefined_arm:\n"
    "    mov     r4, r0\n"
    "undefined_arm_at:\n"
    "    .inst   0xe7f000f0\n"          /* permanently undefined */
    "undefined_arm_next:\n"
    "    mov     r0, r4\n"
    "    b       landing_from_asm\n"
    "    .global undefined_thumb, undefined_thumb_at\n"
    "    .type undefined_thumb, %function\n"
    "undefined_thumb:\n"
    "    mov     r4, r0\n"
    "    ldr     r1, =thumb_part + 1\n"
    "    bx      r1\n"
    "    .ltorg\n"
    "    .thumb\n"
    "    .balign 4\n"
    "thumb_part:\n"
    "undefined_thumb_at:\n"
    "    .inst.n 0xde00\n"              /* permanently undefined */
    "    .inst.n 0xde00\n"              /* at 2 modulo 4 */
    "    .arm\n"
    "    .balign 4\n");
void landing_from_asm(word_t value);
void landing_from_asm(word_t value)
{
    landing(value);
}

static bool undefined_resumes(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    faulting_child(undefined_arm, 321, endpoint);
    m = receive(endpoint);
    SAME(m.badge, 42);
    SAME(message_label(m.info), FAULT_UNDEFINED);
    SAME(message_length(m.info), FAULT_WORDS);
    SAME(m.w[0], (word_t)undefined_arm_at);
    SAME(m.w[2] & 0x1ff, 0x150);
    answer(0, 1, (word_t)undefined_arm_next, 0, 0);
    SAME(wait_report(), 321);
    return true;
}

static bool undefined_thumb_resumes(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    faulting_child(undefined_thumb, 322, endpoint);
    m = receive(endpoint);
    SAME(message_label(m.info), FAULT_UNDEFINED);
    SAME(m.w[0], (word_t)undefined_thumb_at);
    SAME(m.w[2] & 0x20, 0x20);
    answer(0, 3, m.w[0] + 3, m.w[1], m.w[2]); /* the next, with the lowest bit set */
    m = receive(endpoint);
    SAME(m.w[0], (word_t)undefined_thumb_at + 2);
    answer(0, 3, (word_t)undefined_arm_next, m.w[1], m.w[2] & ~0x20u); /* back to ARM */
    SAME(wait_report(), 322);
    return true;
}

static void use_vfp(word_t unused)
{
    (void)unused;
    __asm__ volatile(".inst 0xeef10a10"); /* fmrx r0, fpscr: no access was given */
    tell(1);
    rest();
}

static bool vfp_is_undefined(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    faulting_child(use_vfp, 0, endpoint);
    m = receive(endpoint);
    SAME(message_label(m.info), FAULT_UNDEFINED);
    answer(0, 1, m.w[0] + 4, 0, 0);
    SAME(wait_report(), 1);
    return true;
}

/* Privileged instructions do not work in user mode. */
static void use_cp15(word_t unused)
{
    (void)unused;
    __asm__ volatile("mcr p15, 0, r0, c8, c7, 0");
    tell(1);
    rest();
}

static bool cp15_is_undefined(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    faulting_child(use_cp15, 0, endpoint);
    SAME(message_label(receive(endpoint).info), FAULT_UNDEFINED);
    return true;
}

/*
 * Registers that users could write, and that would tell one thread of another.  QEMU's ARM1136 is of
 * revision r1p3, which has thread registers; the Cortex-A8 has ThumbEE, and counters elsewhere.
 */
static void use_thumbee(word_t unused)
{
    (void)unused;
    __asm__ volatile("mcr p14, 6, r0, c1, c0, 0"); /* where handlers of ThumbEE are */
    tells(1);
}

static void use_counter(word_t unused)
{
    (void)unused;
    __asm__ volatile("mcr p15, 0, r0, c9, c12, 2" : : : "r0"); /* the counters' flags */
    tells(1);
}

static void use_counter_of_arm1136(word_t unused)
{
    (void)unused;
    __asm__ volatile("mrc p15, 0, r0, c15, c12, 1" : : : "r0");
    tells(1);
}

static void write_read_only_thread_register(word_t unused)
{
    (void)unused;
    __asm__ volatile("mcr p15, 0, r0, c13, c0, 3");
    tells(1);
}

static void read_privileged_thread_register(word_t unused)
{
    (void)unused;
    __asm__ volatile("mrc p15, 0, r0, c13, c0, 4" : : : "r0");
    tells(1);
}

static bool is_undefined(void (*use)(word_t))
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    faulting_child(use, 0, endpoint);
    run_child(tells, 5, 1, 0, 0);
    SAME(wait_report(), 5); /* and not 1 */
    SAME(message_label(receive(endpoint).info), FAULT_UNDEFINED);
    return true;
}

static bool shared_registers_are_undefined(void)
{
    return is_undefined(use_thumbee) && is_undefined(use_counter)
        && is_undefined(use_counter_of_arm1136);
}

static bool other_thread_registers_are_closed(void)
{
    return is_undefined(write_read_only_thread_register)
        && is_undefined(read_privileged_thread_register);
}

static word_t thread_register(void)
{
    word_t value;

    __asm__ volatile("mrc p15, 0, %0, c13, c0, 2" : "=r"(value));
    return value;
}

static void set_thread_register(word_t value)
{
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 2" : : "r"(value));
}

static word_t read_only_thread_register(void)
{
    word_t value;

    __asm__ volatile("mrc p15, 0, %0, c13, c0, 3" : "=r"(value));
    return value;
}

/* Tells what it finds in its thread register, and again when it has lost the processor. */
static void keeps_thread_register(word_t value)
{
    tell(thread_register() | read_only_thread_register());
    set_thread_register(value);
    receive(CHILD_ENDPOINT);
    tells(thread_register());
}

static bool thread_registers_are_private(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    set_thread_register(99);
    for (word_t i = 1; i <= 3; i++) {
        run_child(keeps_thread_register, i, 10, endpoint, 0);
        SAME(wait_report(), 0);
    }
    let_others_run();
    for (word_t i = 1; i <= 3; i++) {
        SAME(send(SYS_SEND, endpoint, 0), 0);
        SAME(wait_report(), i);
    }
    SAME(thread_register(), 99);
    return true;
}

/* Puts its own number there, again and again, until another one's was there. */
static void mixes_thread_registers(word_t number)
{
    for (word_t i = 0; i < 500000; i++) {
        set_thread_register(number);
        for (word_t j = 0; j < 20; j++)
            if (thread_register() != number)
                tells(99);
    }
    tells(number);
}

static bool slices_end_between_thread_registers(void)
{
    word_t told;

    run_child(mixes_thread_registers, 1, 10, 0, 0);
    run_child(mixes_thread_registers, 2, 10, 0, 0);
    told = wait_report();
    SAME(told == 1 || told == 2, true);
    SAME(wait_report(), 3 - told);
    return true;
}

/* ---- handlers ------------------------------------------------------------------ */

static bool no_handler_stops(void)
{
    struct child child = make_child(read_word, HOLE, 20, 0xffffffff);
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child deaf = make_child(read_word, HOLE, 20, FAULT_SLOT);

    give(&deaf, FAULT_SLOT, endpoint, RIGHT_RECEIVE, 0); /* cannot be sent to */
    start(&child);
    start(&deaf);
    run_child(landing, 3, 10, 0, 0);
    SAME(wait_report(), 3);
    /* Stopped threads can be given new registers and go on. */
    SAME(tcb_write_registers(child.tcb, (word_t)landing, 0x00100000 + 0x1000, 0, 4),
         ERROR_NONE);
    SAME(tcb_resume(deaf.tcb), ERROR_NONE); /* faults again, stops again */
    run_child(landing, 5, 10, 0, 0);
    SAME(wait_report(), 5);
    return true;
}

static bool other_label_stops(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = faulting_child(read_word, HOLE, endpoint);

    receive(endpoint);
    SAME(tcb_resume(child.tcb), ERROR_ILLEGAL_OPERATION); /* it waits for the answer */
    answer(1, 0, 0, 0, 0);
    run_child(landing, 6, 5, 0, 0);
    SAME(wait_report(), 6); /* not the child */
    SAME(tcb_resume(child.tcb), ERROR_NONE);
    SAME(receive(endpoint).w[3], HOLE); /* the same fault again */
    return true;
}

/* The fault waits in the queue of the endpoint until somebody receives. */
static bool fault_waits_for_handler(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    faulting_child(undefined_arm, 801, endpoint);
    faulting_child(jump, HOLE, endpoint);
    run_child(landing, 2, 5, 0, 0);
    SAME(wait_report(), 2); /* both have faulted by now */
    m = receive(endpoint);
    SAME(m.badge, 42);
    SAME(message_label(m.info), FAULT_UNDEFINED);
    SAME(message_length(m.info), FAULT_WORDS);
    SAME(m.w[0], (word_t)undefined_arm_at);
    answer(0, 1, (word_t)undefined_arm_next, 0, 0);
    m = receive(endpoint);
    SAME(m.badge, 42);
    SAME(message_label(m.info), FAULT_PREFETCH_ABORT);
    SAME(STATUS(fault_status()), TRANSLATION_PAGE);
    answer(0, 1, (word_t)landing, 0, 0);
    SAME(wait_report(), 801);
    SAME(wait_report(), 99);
    return true;
}

/* The handler is itself a child, which receives while the fault happens. */
static void handler(word_t target)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        word_t label = message_label(m.info);

        m.badge = CHILD_ENDPOINT;
        m.info = message_make(1, 0, 0, 0);
        m.w[0] = label == FAULT_UNDEFINED ? (word_t)undefined_arm_next : target;
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

static bool handler_in_other_space(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(handler, (word_t)landing, 10, endpoint, 0);
    run_child(landing, 1, 5, 0, 0);
    SAME(wait_report(), 1);
    faulting_child(undefined_arm, 600, endpoint);
    SAME(wait_report(), 600);
    faulting_child(jump, NO_TABLE, endpoint);
    SAME(wait_report(), 99);
    faulting_child(read_word, HOLE, endpoint);
    wait_report(); /* landing, with the former r0 */
    return true;
}

/* The answer cannot make a thread privileged. */
static bool answer_cannot_privilege(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    faulting_child(undefined_arm, 0, endpoint);
    m = receive(endpoint);
    answer(0, 3, (word_t)use_cp15, m.w[1], 0x1f);
    m = receive(endpoint);
    SAME(message_label(m.info), FAULT_UNDEFINED);
    SAME(m.w[2] & 0x1ff, 0x150);
    return true;
}

const struct test fault_tests[] = {
    { byte_order_is_kept, "a fault handler that writes back what it read keeps the byte order" },
#if __ARM_ARCH >= 7
    { it_block_is_kept, "a fault handler that writes back what it read keeps the IT block" },
#endif
    { it_blocks_are_of_thumb_code, "a thread is put in an IT block only in Thumb state, and only where there are any" },
    { an_answer_begins_no_block, "an answer to a fault begins no IT block in ARM state" },
    { data_fault_resumes, "a read of an unmapped page reaches its handler and is resumed" },
    { write_fault_resumes, "a write without table, then without page, is resumed each time" },
    { protected_memory, "text cannot be written, the kernel and its devices not be touched" },
    { prefetch_fault_resumes, "a jump to what cannot be executed reaches its handler" },
    { undefined_resumes, "an undefined instruction reaches its handler, which skips it" },
    { undefined_thumb_resumes, "the same in Thumb state, and back to ARM state" },
    { vfp_is_undefined, "floating point is undefined" },
    { cp15_is_undefined, "a privileged coprocessor operation is undefined" },
    { shared_registers_are_undefined, "registers of ThumbEE and of the counters are undefined" },
    { other_thread_registers_are_closed, "the thread registers of the kernel cannot be used" },
    { thread_registers_are_private, "each thread has its own thread register" },
    { slices_end_between_thread_registers, "and keeps it when its slice of time ends" },
    { no_handler_stops, "without a usable handler only the faulting thread stops" },
    { other_label_stops, "a fault answered with another label leaves the thread stopped" },
    { fault_waits_for_handler, "faults wait in order until their handler receives" },
    { handler_in_other_space, "a waiting handler in a third address space handles all kinds" },
    { answer_cannot_privilege, "a handler's answer cannot make a thread privileged" },
    { NULL, NULL },
};
