/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between threads: words and capabilities.
 *
 * The first words are in registers; the rest, and the addresses of capabilities, in the buffers,
 * which the kernel reaches through its own window.  A thread without a buffer sends and receives
 * only the words in registers.
 */
#include <kernel.h>
#include <lookup.h>
#include <machine.h>

/*
 * Some words of a line, from one on, but not all.  All are read before any is written: the lines
 * may be in each other's place in the cache.  This and the next are functions of their own, so that
 * the words are in registers.
 */
static __attribute__((noinline)) void copy_part(word_t *target, const word_t *source, word_t words)
{
    word_t first = source[0], second = source[1], third = source[2], fourth = source[3];
    word_t fifth = source[4], sixth = source[5], seventh = source[6];

    if (words == 0)
        return;
    READ_LINE(target);
    target[0] = first;
    if (words > 1)
        target[1] = second;
    if (words > 2)
        target[2] = third;
    if (words > 3)
        target[3] = fourth;
    if (words > 4)
        target[4] = fifth;
    if (words > 5)
        target[5] = sixth;
    if (words > 6)
        target[6] = seventh;
}

/* The first words: those behind the registers, to the end of their line. */
#define HEAD_WORD  (BUFFER_WORDS + MESSAGE_REGISTERS)
#define HEAD_WORDS (LINE_WORDS - HEAD_WORD)

/* Copy the words of a message behind the registers; both buffers exist. */
static __attribute__((noinline)) void copy_buffer(word_t *target, const word_t *source, word_t words)
{
    word_t head = words < HEAD_WORDS ? words : HEAD_WORDS;
    word_t lines = ((words - head) & (IPC_BUFFER_BYTES / 4 - 1)) / LINE_WORDS;
    word_t first = source[HEAD_WORD], second = source[HEAD_WORD + 1], third = source[HEAD_WORD + 2];

    READ_LINE(target);
    target[HEAD_WORD] = first;
    if (head > 1)
        target[HEAD_WORD + 1] = second;
    if (head > 2)
        target[HEAD_WORD + 2] = third;
    copy_part(target + LINE_WORDS * (lines + 1), source + LINE_WORDS * (lines + 1),
              (words - head) % LINE_WORDS);
    /* bound: MESSAGE_WORDS_MAX / LINE_WORDS + 1: whole lines, the last first */
    for (; lines != 0; lines--) {
        word_t line = lines;

        COMPUTED_IN_EACH_TURN(line);
        machine_copy_line(target + LINE_WORDS * line, source + LINE_WORDS * line);
    }
}

/* Copy the words; returns how many arrive. */
static word_t copy_words(const struct tcb *from, struct tcb *to, word_t length)
{
    word_t first = from->regs[REG_WORDS], second = from->regs[REG_WORDS + 1];
    word_t third = from->regs[REG_WORDS + 2], fourth = from->regs[REG_WORDS + 3];
    struct ipc_buffer *target;

    READ_LINE(&to->regs[REG_WORDS]);
    to->regs[REG_WORDS] = first;
    to->regs[REG_WORDS + 1] = second;
    to->regs[REG_WORDS + 2] = third;
    to->regs[REG_WORDS + 3] = fourth;
    if (length <= MESSAGE_REGISTERS)
        return length;
    target = to->buffer;
    if (from->buffer == NULL || target == NULL)
        return MESSAGE_REGISTERS;
    if (length > MESSAGE_WORDS_MAX)
        length = MESSAGE_WORDS_MAX;
    copy_buffer((word_t *)in_window((word_t)target, IPC_BUFFER_BYTES),
                (const word_t *)in_window((word_t)from->buffer, IPC_BUFFER_BYTES),
                length - MESSAGE_REGISTERS);
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

/* Look up the receive slot, and the slots of the sender's addresses, up to the first that fails. */
void message_find_caps(struct message_caps *caps, struct tcb *from, struct tcb *to,
                       bool may_grant)
{
    word_t count = message_extra(from->regs[REG_MESSAGE]);

    caps->count = 0;
    if (!may_grant || count == 0 || from->buffer == NULL || to->buffer == NULL)
        return;
    caps->target = receive_slot(to);
    if (lookup_row(from, count, caps->source, &caps->count))
        return;
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
 * Pass on the capabilities, in order.  One that is not unwrapped may go into the receive slot; the
 * next such one ends it.  Returns the "extra" and "unwrapped" bits of the receiver's message
 * register.
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
    word_t message, length, passed;

    from = tcb_at(from);
    to = tcb_at(to);
    message = from->regs[REG_MESSAGE];
    length = copy_words(from, to, message_length(message));
    passed = caps->count == 0 ? 0 : pass_caps(caps, to, through);
    to->regs[REG_MESSAGE] = message_make(length, 0, 0, message_label(message)) | passed;
}
