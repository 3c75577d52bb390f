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

/* Look up the receive slot, and what the sender's addresses lead to, up to the first that does not. */
void message_find_caps(struct message_caps *caps, struct tcb *from, struct tcb *to,
                       bool may_grant)
{
    word_t count = message_extra(from->regs[REG_MESSAGE]);

    caps->count = 0;
    if (!may_grant || count == 0 || from->buffer == NULL || to->buffer == NULL)
        return;
    caps->target = receive_slot(to);
    /* bound: EXTRA_CAPS_MAX + 1: count is a two-bit field */
    for (word_t i = 0; i < count; i++) {
        caps->source[i] = cspace_lookup(from, from->buffer->w[BUFFER_CAPS + i]);
        if (caps->source[i] == NULL)
            return;
        caps->count = i + 1;
    }
}

/*
 * From index i on: those to the endpoint that the message goes through arrive as their
 * badges.  Returns the index of the first that does not, and marks the others.
 */
static word_t message_unwrap(const struct message_caps *caps, word_t i, struct tcb *to,
                             const struct endpoint *through, word_t *unwrapped)
{
    /* bound: EXTRA_CAPS_MAX + 1 */
    for (; i < EXTRA_CAPS_MAX && i < caps->count; i++) {
        const struct cap *cap = &caps->source[i]->cap;

        if (cap_type(cap) != CAP_ENDPOINT || endpoint_cap_object(cap) != (word_t)through)
            break;
        to->buffer->w[BUFFER_CAPS + i] = endpoint_cap_badge(cap);
        *unwrapped |= 1u << i;
    }
    return i;
}

/*
 * Pass on the capabilities, in order.  One other than those that are unwrapped may go
 * into the receive slot; the next other one ends it.  Returns the "extra" and "unwrapped"
 * bits of the receiver's message register.
 */
static word_t pass_caps(const struct message_caps *caps, struct tcb *to,
                        const struct endpoint *through)
{
    word_t unwrapped = 0;
    word_t i = message_unwrap(caps, 0, to, through, &unwrapped);
    struct cap derived;

    if (i < caps->count && caps->target != NULL
        && slot_derive(caps->source[i], &derived) == ERROR_NONE) {
        slot_copy(caps->target, &derived, caps->source[i]);
        i = message_unwrap(caps, i + 1, to, through, &unwrapped);
    }
    return message_make(0, i, unwrapped, 0);
}

/*
 * Give the message in one thread's registers and buffer to another, all but the
 * badge.  "through" is the endpoint used, null for an answer.
 */
void message_transfer(struct tcb *from, struct tcb *to, const struct endpoint *through,
                      const struct message_caps *caps)
{
    word_t message = from->regs[REG_MESSAGE];
    word_t length = copy_words(from, to, message_length(message));
    word_t passed = caps->count == 0 ? 0 : pass_caps(caps, to, through);

    to->regs[REG_MESSAGE] = message_make(length, 0, 0, message_label(message)) | passed;
}
