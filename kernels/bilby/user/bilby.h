/* SPDX-License-Identifier: BSD-2-Clause */
/* The user library: system calls, and invocations as functions. */
#ifndef USER_BILBY_H
#define USER_BILBY_H

#include <stdbool.h>
#include <stddef.h>
#include <bilby/api.h>

#include <layout.h>
#include <layout_sizes.h>

/* Whether a page directory needs a number before it can be used. */
#ifdef ASID_POOL_SIZE_BITS
#define SPACES_HAVE_NUMBERS 1
#else
#define SPACES_HAVE_NUMBERS 0
#endif

/* The inputs and outputs of a system call. */
struct message {
    word_t badge;  /* in: address of the capability */
    word_t info;   /* message register */
    word_t w[4];
};

/* One system call; the message is read and replaced. */
static inline void syscall(word_t number, struct message *message)
{
    register word_t r0 __asm__("r0") = message->badge;
    register word_t r1 __asm__("r1") = message->info;
    register word_t r2 __asm__("r2") = message->w[0];
    register word_t r3 __asm__("r3") = message->w[1];
    register word_t r4 __asm__("r4") = message->w[2];
    register word_t r5 __asm__("r5") = message->w[3];
    register word_t r7 __asm__("r7") = number;

    __asm__ volatile("svc 0"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+r"(r5)
                     : "r"(r7) : "memory");
    message->badge = r0;
    message->info = r1;
    message->w[0] = r2;
    message->w[1] = r3;
    message->w[2] = r4;
    message->w[3] = r5;
}

/* The message buffer of the running thread; every thread has it at this address. */
#define BUFFER ((volatile word_t *)ROOT_BUFFER)

/* Of a thread that does not run: as tcb_write_registers() sets them. */
struct registers {
    word_t pc, sp, cpsr, r[13], lr;
};

/* Take a message or a signal that is there; ERROR_NOTHING else. */
word_t poll(word_t cap, struct message *message);

/* Console: the UART frame mapped at UART_ADDRESS. */
#define UART_ADDRESS 0x001fc000u
void put_char(char c);
void put_string(const char *text);
void put_number(word_t value);
void put_hex(word_t value);

_Noreturn void exit_program(word_t status);

/* Invocations; each returns an ERROR_ code. */
word_t invoke(word_t cap, word_t label, const word_t *words, word_t length,
              const word_t *caps, word_t cap_count);
word_t untyped_retype(word_t untyped, word_t type, word_t size_bits, word_t node,
                      word_t index, word_t depth, word_t first, word_t count);
word_t cnode_copy(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                  word_t from, word_t from_depth, word_t rights);
word_t cnode_mint(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                  word_t from, word_t from_depth, word_t rights, word_t data);
word_t cnode_move(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                  word_t from, word_t from_depth);
word_t cnode_mutate(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                    word_t from, word_t from_depth, word_t data);
word_t cnode_rotate(word_t root, word_t to, word_t pivot, word_t from);
word_t cnode_delete(word_t root, word_t index, word_t depth);
word_t cnode_revoke(word_t root, word_t index, word_t depth);
word_t cnode_recycle(word_t root, word_t index, word_t depth);
word_t frame_map(word_t frame, word_t directory, word_t address, word_t rights, word_t flags);
word_t frame_unmap(word_t frame);
word_t frame_address(word_t frame, word_t *address);             /* the physical one */
word_t frame_clean(word_t frame, word_t first, word_t bytes);   /* at most FRAME_CLEAN_BYTES_MAX */
word_t frame_publish(word_t frame, word_t first, word_t bytes); /* the same, of instructions */
word_t page_table_unmap(word_t table);
word_t page_table_map(word_t table, word_t directory, word_t address);
word_t asid_make_pool(word_t control, word_t untyped, word_t root, word_t index, word_t depth);
word_t asid_assign(word_t pool, word_t directory);
word_t tcb_configure(word_t tcb, word_t fault_handler, word_t cspace, word_t vspace,
                     word_t frame, word_t offset);
word_t tcb_write_registers(word_t tcb, word_t pc, word_t sp, word_t cpsr, word_t r0);
word_t tcb_read_registers(word_t tcb, struct registers *registers);
word_t tcb_unconfigure(word_t tcb);
word_t tcb_bind(word_t tcb, word_t notification); /* its signals end the thread's receives, too */
word_t tcb_unbind(word_t tcb);
word_t tcb_resume(word_t tcb);
word_t tcb_suspend(word_t tcb);
word_t tcb_set_priority(word_t tcb, word_t priority);
word_t irq_get(word_t irq, word_t root, word_t index, word_t depth);
word_t irq_set_notification(word_t handler, word_t notification);
word_t irq_clear_notification(word_t handler);
word_t irq_acknowledge(word_t handler);

#endif
