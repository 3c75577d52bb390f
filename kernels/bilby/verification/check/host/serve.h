/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol on the two pipes between the host build and its driver.
 * All numbers are 32-bit words, little-endian.
 *
 *   request: operation, ARGUMENTS words, number of writes, (address, value) of each:
 *            first written as a user or another bus master would
 *            The last two arguments are the time in ticks, low and high word, the one before is
 *            r6 of a system call that sends and receives; both only where time is a capability
 *   answer:  status, changes, tests, current thread, length of the text,
 *            then (address, value) for each change of the window, then the text
 */
#ifndef CHECK_SERVE_H
#define CHECK_SERVE_H

#define ARGUMENTS 11
#define ARGUMENT_SECOND 8 /* r6 */
#define ARGUMENT_TIME 9
#define WRITES_MAX 256

#define OP_SYSCALL   1 /* r0 to r5, r7, preemption: 0, or FORCE_EACH */
#define OP_INTERRUPT 2 /* line */
#define OP_FAULT     3 /* FAULT_ of the API, address, status */
#define OP_WRITE     4 /* only the writes */
#define OP_READ      5 /* window address, words: answered as changes */
#define OP_RESET     6 /* back to the state after boot, or after OP_START */
#define OP_PUBLISHED 7 /* window address, bytes: status 0 if clean and not in the instruction cache */
#define OP_EXIT      8
#define OP_ATTEMPT   9 /* as OP_SYSCALL, once, preempted at the test given last; bits 31:16: by this line, 0: PREEMPT_LINE */

#define OP_STORE     10 /* address, value: a user's, through the data cache */
#define OP_DEVICE    11 /* address, value: past the data cache */
#define OP_CLEAN     12 /* window address, bytes: status 0 if the data cache and memory agree */
#define OP_FORGOTTEN 13 /* window address, bytes: status 0 if nothing is in the instruction cache */

#define OP_START     14 /* this is the state that OP_RESET goes back to */

#define FORCE_EACH 1

#define STATUS_GOOD   0
#define STATUS_FAILED 1 /* an invariant, or the comparison of preempted runs: see the text */
#define STATUS_PANIC  2
#define STATUS_NO     3 /* OP_PUBLISHED */

#define PC_OF_SVC  0x00101000u /* of every system call that is driven */

#endif
