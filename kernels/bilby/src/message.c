/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between threads: words and capabilities.
 *
 * The first words are in registers; the rest, and the addresses of capabilities,
 * in the buffers, which the kernel reaches through its own window.  A thread
 * without a buffer sends and receives what fits into registers.
 */
#include <kernel.h>
#include <machine.h>

/* Word of the message a thread sends; index < length. */
word_t message_word(const struct tcb *thread, word_t index)
{
    if (index < MESSAGE_REGISTERS)
        return thread->regs[REG_WORDS + index];
    return thread->buffer->w[BUFFER_WORDS + index];
}

/* The line of a buffer that holds this word of the message. */
static word_t *line_of(word_t *buffer, word_t index)
{
    return buffer + ((BUFFER_WORDS + index) & (IPC_BUFFER_BYTES / 4 - LINE_WORDS));
}

/* Copy the words; returns how many arrive. */
static word_t copy_words(const struct tcb *from, struct tcb *to, word_t length)
{
    word_t *source;
    word_t *target;
    word_t next = MESSAGE_REGISTERS;

    to->regs[REG_WORDS] = from->regs[REG_WORDS];
    to->regs[REG_WORDS + 1] = from->regs[REG_WORDS + 1];
    to->regs[REG_WORDS + 2] = from->regs[REG_WORDS + 2];
    to->regs[REG_WORDS + 3] = from->regs[REG_WORDS + 3];
    if (length <= MESSAGE_REGISTERS)
        return length;
    if (from->buffer == NULL || to->buffer == NULL)
        return MESSAGE_REGISTERS;
    if (length > MESSAGE_WORDS_MAX)
        length = MESSAGE_WORDS_MAX;
    source = (word_t *)in_window((word_t)from->buffer, IPC_BUFFER_BYTES);
    target = (word_t *)in_window((word_t)to->buffer, IPC_BUFFER_BYTES);
    /* bound: LINE_WORDS: to the end of the first line */
    for (word_t i = BUFFER_WORDS + MESSAGE_REGISTERS; i < LINE_WORDS && next < length; i++) {
        target[i] = source[i];
        next++;
    }
    /* bound: MESSAGE_WORDS_MAX / LINE_WORDS + 1: whole lines */
    for (word_t left = ((length - next) & 127) / LINE_WORDS; left != 0; left--) {
        machine_copy_line(line_of(target, next), line_of(source, next));
        next += LINE_WORDS;
    }
    /* bound: LINE_WORDS: what is left is less than a line */
    for (word_t left = (length - next) % LINE_WORDS; left != 0; left--) {
        target[BUFFER_WORDS + next] = source[BUFFER_WORDS + next];
        next++;
    }
    return length;
}

/* The slot in which a thread wants to receive a capability; null if none. */
static struct slot *receive_slot(struct tcb *to)
{
    const struct ipc_buffer *buffer = to->buffer;
    struct slot *root = cspace_lookup(to, buffer->w[BUFFER_RECEIVE_ROOT]);
    struct slot *slot;

    if (root == NULL)
        return NULL;
    if (cspace_find_empty(&root->cap, buffer->w[BUFFER_RECEIVE_INDEX],
                          buffer->w[BUFFER_RECEIVE_DEPTH], &slot) != ERROR_NONE)
        return NULL;
    return slot;
}

/*
 * Pass on the capabilities at the sender's addresses, in order.  One to the
 * endpoint that the message goes through arrives as its badge.  One other may go
 * into the receive slot.  The first that cannot be passed on ends it.  Returns
 * the "extra" and "unwrapped" bits of the receiver's message register.
 */
static word_t copy_caps(struct tcb *from, struct tcb *to,
                        const struct endpoint *through, word_t count)
{
    struct slot *target = receive_slot(to);
    word_t unwrapped = 0;
    word_t i;

    /* bound: EXTRA_CAPS_MAX + 1: count is a two-bit field */
    for (i = 0; i < count; i++) {
        struct slot *source = cspace_lookup(from, from->buffer->w[BUFFER_CAPS + i]);
        struct cap derived;

        if (source == NULL)
            break;
        if (through != NULL && cap_type(&source->cap) == CAP_ENDPOINT
            && endpoint_cap_object(&source->cap) == (word_t)through) {
            to->buffer->w[BUFFER_CAPS + i] = endpoint_cap_badge(&source->cap);
            unwrapped |= 1u << i;
            continue;
        }
        if (target == NULL || slot_derive(source, &derived) != ERROR_NONE)
            break;
        slot_copy(target, &derived, source);
        target = NULL;
    }
    return message_make(0, i, unwrapped, 0);
}

/*
 * Give the message in one thread's registers and buffer to another, all but the
 * badge.  "through" is the endpoint used, null for an answer.
 */
void message_transfer(struct tcb *from, struct tcb *to,
                      const struct endpoint *through, bool may_grant)
{
    word_t message = from->regs[REG_MESSAGE];
    word_t length = copy_words(from, to, message_length(message));
    word_t caps = 0;

    if (may_grant && message_extra(message) != 0
        && from->buffer != NULL && to->buffer != NULL)
        caps = copy_caps(from, to, through, message_extra(message));
    to->regs[REG_MESSAGE] = message_make(length, 0, 0, message_label(message)) | caps;
}
