/* SPDX-License-Identifier: BSD-2-Clause */
/* Invocations as functions: each fills a message, calls, and returns the error. */
#include "bilby.h"

word_t poll(word_t cap, struct message *message)
{
    message->badge = cap;
    syscall(SYS_POLL, message);
    return message->badge & SYSCALL_FAILED ? message->badge & ~SYSCALL_FAILED : ERROR_NONE;
}

word_t invoke(word_t cap, word_t label, const word_t *words, word_t length,
              const word_t *caps, word_t cap_count)
{
    struct message m = { cap, message_make(length, cap_count, 0, label), { 0, 0, 0, 0 } };

    for (word_t i = 0; i < length; i++) {
        if (i < MESSAGE_REGISTERS)
            m.w[i] = words[i];
        else
            BUFFER[BUFFER_WORDS + i] = words[i];
    }
    for (word_t i = 0; i < cap_count; i++)
        BUFFER[BUFFER_CAPS + i] = caps[i];
    syscall(SYS_CALL, &m);
    return message_label(m.info);
}

word_t untyped_retype(word_t untyped, word_t type, word_t size_bits, word_t node,
                      word_t index, word_t depth, word_t first, word_t count)
{
    word_t words[] = { type, size_bits, index, depth, first, count };

    return invoke(untyped, LABEL_UNTYPED_RETYPE, words, 6, &node, 1);
}

word_t cnode_copy(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                  word_t from, word_t from_depth, word_t rights)
{
    word_t words[] = { to, to_depth, from, from_depth, rights };

    return invoke(to_root, LABEL_CNODE_COPY, words, 5, &from_root, 1);
}

word_t cnode_mint(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                  word_t from, word_t from_depth, word_t rights, word_t data)
{
    word_t words[] = { to, to_depth, from, from_depth, rights, data };

    return invoke(to_root, LABEL_CNODE_MINT, words, 6, &from_root, 1);
}

word_t cnode_move(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                  word_t from, word_t from_depth)
{
    word_t words[] = { to, to_depth, from, from_depth };

    return invoke(to_root, LABEL_CNODE_MOVE, words, 4, &from_root, 1);
}

word_t cnode_mutate(word_t to_root, word_t to, word_t to_depth, word_t from_root,
                    word_t from, word_t from_depth, word_t data)
{
    word_t words[] = { to, to_depth, from, from_depth, data };

    return invoke(to_root, LABEL_CNODE_MUTATE, words, 5, &from_root, 1);
}

/* All three by full addresses below one root. */
word_t cnode_rotate(word_t root, word_t to, word_t pivot, word_t from)
{
    word_t words[] = { to, 32, pivot, 32, from, 32 };
    word_t caps[] = { root, root };

    return invoke(root, LABEL_CNODE_ROTATE, words, 6, caps, 2);
}

static word_t invoke_slot(word_t label, word_t root, word_t index, word_t depth)
{
    word_t words[] = { index, depth };

    return invoke(root, label, words, 2, NULL, 0);
}

word_t cnode_delete(word_t root, word_t index, word_t depth)
{
    return invoke_slot(LABEL_CNODE_DELETE, root, index, depth);
}

word_t cnode_revoke(word_t root, word_t index, word_t depth)
{
    return invoke_slot(LABEL_CNODE_REVOKE, root, index, depth);
}

word_t cnode_recycle(word_t root, word_t index, word_t depth)
{
    return invoke_slot(LABEL_CNODE_RECYCLE, root, index, depth);
}

word_t frame_unmap(word_t frame)
{
    return invoke(frame, LABEL_FRAME_UNMAP, NULL, 0, NULL, 0);
}

word_t frame_address(word_t frame, word_t *address)
{
    struct message m = { frame, message_make(0, 0, 0, LABEL_FRAME_ADDRESS), { 0, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    *address = m.w[0];
    return message_label(m.info);
}

word_t frame_clean(word_t frame, word_t first, word_t bytes)
{
    word_t words[] = { first, bytes };

    return invoke(frame, LABEL_FRAME_CLEAN, words, 2, NULL, 0);
}

word_t frame_publish(word_t frame, word_t first, word_t bytes)
{
    word_t words[] = { first, bytes };

    return invoke(frame, LABEL_FRAME_PUBLISH, words, 2, NULL, 0);
}

word_t page_table_unmap(word_t table)
{
    return invoke(table, LABEL_PAGE_TABLE_UNMAP, NULL, 0, NULL, 0);
}

word_t frame_map(word_t frame, word_t directory, word_t address, word_t rights, word_t flags)
{
    word_t words[] = { address, rights, flags };

    return invoke(frame, LABEL_FRAME_MAP, words, 3, &directory, 1);
}

word_t page_table_map(word_t table, word_t directory, word_t address)
{
    return invoke(table, LABEL_PAGE_TABLE_MAP, &address, 1, &directory, 1);
}

word_t asid_make_pool(word_t control, word_t untyped, word_t root, word_t index, word_t depth)
{
    word_t words[] = { index, depth };
    word_t caps[] = { untyped, root };

    return invoke(control, LABEL_ASID_MAKE_POOL, words, 2, caps, 2);
}

word_t asid_assign(word_t pool, word_t directory)
{
    return invoke(pool, LABEL_ASID_ASSIGN, NULL, 0, &directory, 1);
}

/* A frame of 0: no message buffer. */
word_t tcb_configure(word_t tcb, word_t fault_handler, word_t cspace, word_t vspace,
                     word_t frame, word_t offset)
{
    word_t words[] = { fault_handler, offset };
    word_t caps[] = { cspace, vspace, frame };

    return invoke(tcb, LABEL_TCB_CONFIGURE, words, 2, caps, frame ? 3 : 2);
}

/* The lowest bit of the pc is that of a function's address: it goes on in Thumb state. */
word_t tcb_write_registers(word_t tcb, word_t pc, word_t sp, word_t cpsr, word_t r0)
{
    word_t words[17] = { pc, sp, cpsr | (pc & 1) << 5, r0 };

    return invoke(tcb, LABEL_TCB_WRITE_REGISTERS, words, 17, NULL, 0);
}

word_t tcb_read_registers(word_t tcb, struct registers *registers)
{
    struct message m = { tcb, message_make(0, 0, 0, LABEL_TCB_READ_REGISTERS), { 0, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    if (message_label(m.info) != ERROR_NONE)
        return message_label(m.info);
    registers->pc = m.w[0];
    registers->sp = m.w[1];
    registers->cpsr = m.w[2];
    registers->r[0] = m.w[3];
    for (word_t i = 1; i < 13; i++)
        registers->r[i] = BUFFER[BUFFER_WORDS + 3 + i];
    registers->lr = BUFFER[BUFFER_WORDS + 3 + 13];
    return ERROR_NONE;
}

word_t tcb_unconfigure(word_t tcb)
{
    return invoke(tcb, LABEL_TCB_UNCONFIGURE, NULL, 0, NULL, 0);
}

word_t tcb_bind(word_t tcb, word_t notification)
{
    return invoke(tcb, LABEL_TCB_BIND, NULL, 0, &notification, 1);
}

word_t tcb_unbind(word_t tcb)
{
    return invoke(tcb, LABEL_TCB_UNBIND, NULL, 0, NULL, 0);
}

word_t tcb_resume(word_t tcb)
{
    return invoke(tcb, LABEL_TCB_RESUME, NULL, 0, NULL, 0);
}

word_t tcb_suspend(word_t tcb)
{
    return invoke(tcb, LABEL_TCB_SUSPEND, NULL, 0, NULL, 0);
}

word_t tcb_set_priority(word_t tcb, word_t priority)
{
    return invoke(tcb, LABEL_TCB_SET_PRIORITY, &priority, 1, NULL, 0);
}

word_t irq_get(word_t irq, word_t root, word_t index, word_t depth)
{
    word_t words[] = { irq, index, depth };

    return invoke(ROOT_IRQ_CONTROL, LABEL_IRQ_GET, words, 3, &root, 1);
}

word_t irq_set_notification(word_t handler, word_t notification)
{
    return invoke(handler, LABEL_IRQ_SET_NOTIFICATION, NULL, 0, &notification, 1);
}

word_t irq_clear_notification(word_t handler)
{
    return invoke(handler, LABEL_IRQ_CLEAR_NOTIFICATION, NULL, 0, NULL, 0);
}

word_t irq_acknowledge(word_t handler)
{
    return invoke(handler, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
}
