/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system-call interface between the kernel and every user program.
 * Numbers only, so that C and assembly can both include it.
 *
 * Registers of a system call (svc 0):
 *   r7      number of the call (SYS_...)
 *   r0  in  address of the capability to use (32 bits)
 *       out badge of a received message (28 bits), 0 after a send or an answer;
 *           SYSCALL_FAILED | error if the call itself failed
 *   r1  in  message register: label, capabilities, length (docs/layout.md, "message")
 *       out the same for a received message; the error code as its label after
 *           an invocation
 *   r2-r5   the first four message words; they always travel, for any length
 * Every other register is preserved.
 */
#ifndef BILBY_API_H
#define BILBY_API_H

/* Numbers of the system calls. */
#define SYS_IDLE         0 /* the kernel's idle thread only: finish the work that others left */
#define SYS_CALL         1 /* send, then wait for the answer; or invoke an object */
#define SYS_SEND         2 /* send; wait until somebody receives */
#define SYS_NB_SEND      3 /* send if somebody already receives, else drop */
#define SYS_RECEIVE      4 /* wait for a message or a signal */
#define SYS_REPLY        5 /* answer the call that this thread is serving */
#define SYS_REPLY_RECEIVE 6 /* the two in one */
#define SYS_YIELD        7 /* go to the end of the queue of one's priority */
#define SYS_POLL         8 /* take a message or a signal that is there; do not wait */

/* Only where time is a capability (time_contexts). */
#define SYS_CLOCK        9 /* r2, r3: the time in ticks, low and high word */
#define SYS_SIGNAL_RECEIVE 10 /* signal the notification at address r6, then receive */
#define SYS_NB_SEND_RECEIVE 11 /* send words as NB_SEND to the endpoint at address r6, donate the time, receive */

#define SYSCALL_FAILED 0x80000000u
/* In r0 of a message received from an endpoint: it is a signal of the bound notification. */
#define BOUND_SIGNAL   0x40000000u

/* Error codes: the label of an invocation's result, or with SYSCALL_FAILED. */
#define ERROR_NONE              0
#define ERROR_LOOKUP_FAILED     1 /* an address leads to no slot */
#define ERROR_INVALID_CAPABILITY 2 /* a capability is of the wrong kind */
#define ERROR_INVALID_ARGUMENT  3
#define ERROR_RANGE             4 /* a number is beyond a limit */
#define ERROR_ALIGNMENT         5
#define ERROR_TRUNCATED         6 /* too few words or capabilities sent */
#define ERROR_SLOT_OCCUPIED     7
#define ERROR_NO_MEMORY         8 /* the untyped region has not enough left */
#define ERROR_ALREADY_MAPPED    9
#define ERROR_NO_TABLE          10 /* a page table is missing at that address */
#define ERROR_NO_RIGHT          11 /* the capability does not permit this */
#define ERROR_ILLEGAL_OPERATION 12 /* not in this state, or not on this object */
#define ERROR_INVALID_SYSCALL   13
#define ERROR_ABORTED           14 /* the awaited object was deleted, closed or recycled */
#define ERROR_NO_NUMBER         15 /* all numbers of a pool, or all pools, are in use */
#define ERROR_NOTHING           16 /* no message and no signal is there */
#define ERROR_NO_CONTEXT        17 /* who receives has no time of its own, and a send donates none */
#define ERROR_NO_PLACE          18 /* as many contexts as the release queue has places for are bound */

/*
 * Labels of invocations: SYS_CALL on a capability that is not an endpoint, a
 * notification or a reply.  "w" are message words, "x" the capabilities sent.
 */
#define LABEL_UNTYPED_RETYPE      1 /* w: type, size bits, node index, node depth, first slot, count; x: CNode root.  Of device regions, too */
#define LABEL_CNODE_COPY          2 /* w: to index, to depth, from index, from depth, rights; x: CNode root of from */
#define LABEL_CNODE_MINT          3 /* as copy, then the badge or guard data */
#define LABEL_TCB_CONFIGURE       4 /* w: fault handler address, offset of the buffer in its frame; x: CNode, page directory, frame */
#define LABEL_TCB_WRITE_REGISTERS 5 /* w: pc, sp, cpsr, r0 to r12, lr */
#define LABEL_TCB_RESUME          6
#define LABEL_TCB_SET_PRIORITY    7 /* w: priority, at most the caller's */
#define LABEL_PAGE_TABLE_MAP      8 /* w: address; x: page directory */
#define LABEL_FRAME_MAP           9 /* w: address, rights, MAP_ flags; x: page directory */
#define LABEL_IRQ_GET             10 /* w: line, to index, to depth; x: CNode root */
#define LABEL_IRQ_SET_NOTIFICATION 11 /* x: notification */
#define LABEL_IRQ_ACKNOWLEDGE     12
#define LABEL_CNODE_MOVE          13 /* w: to index, to depth, from index, from depth; x: CNode root of from */
#define LABEL_CNODE_MUTATE        14 /* as move, then the badge or guard data */
#define LABEL_CNODE_ROTATE        15 /* w: to, pivot, from: index and depth each; x: CNode roots of pivot and from */
#define LABEL_CNODE_DELETE        16 /* w: index, depth */
#define LABEL_CNODE_REVOKE        17 /* w: index, depth: delete all that was derived */
#define LABEL_CNODE_RECYCLE       18 /* w: index, depth: revoke, then make the object as new */
#define LABEL_TCB_SUSPEND         19
#define LABEL_FRAME_UNMAP         20
#define LABEL_PAGE_TABLE_UNMAP    21
#define LABEL_IRQ_CLEAR_NOTIFICATION 22

/* Only where address spaces have numbers (vspace_asid.c). */
#define LABEL_ASID_MAKE_POOL      23 /* w: to index, to depth; x: untyped of 4 KiB, CNode root */
#define LABEL_ASID_ASSIGN         24 /* x: page directory */

#define LABEL_FRAME_CLEAN         25 /* w: first byte, bytes: cached data goes to memory, and is read from there again */
#define LABEL_FRAME_PUBLISH       26 /* the same, then the written code can be executed */

#define LABEL_FRAME_ADDRESS       27 /* answer: its physical address, for a device */
#define LABEL_TCB_READ_REGISTERS  28 /* answer: as for write registers; of a stopped thread */
#define LABEL_TCB_UNCONFIGURE     29 /* of one that does not run: it has no spaces and no buffer any more, and can be configured */

#define LABEL_TCB_BIND            30 /* x: notification, whose signals also end a receive from an endpoint */
#define LABEL_TCB_UNBIND          31

/* Only where time is a capability (time_contexts). */
#define LABEL_CONTEXT_CONFIGURE   32 /* of schedule control; w: budget, period; x: context */
#define LABEL_SYSTEM_CRITICALITY  33 /* of schedule control; w: level, 0 to 3: threads below it are less urgent than all others */
#define LABEL_CONTEXT_BIND        34 /* x: thread, or notification: whoever gets a signal and has no context gets it */
#define LABEL_CONTEXT_UNBIND      35
#define LABEL_CONTEXT_CONSUMED    36 /* answer: ticks used since it was last asked, low and high word */
#define LABEL_CONTEXT_YIELD_TO    37 /* the same; its thread is the next of its priority */
#define LABEL_TCB_SET_CRITICALITY 38 /* w: criticality, at most the caller's limit */
#define LABEL_TCB_SET_LIMITS      39 /* w: highest priority, highest criticality that it may give */
#define LABEL_TCB_SET_TIMEOUT     40 /* x: endpoint that is told when its budget is used up; none: nobody is */
#define LABEL_TCB_SAVE_CALLER     41 /* w: to index, to depth; x: CNode root: its reply capability */
#define LABEL_CNODE_SWAP_CALLER   42 /* w: index, depth: the caller's own reply capability and that slot change places */

/* Of a frame, by one such call: multiples of 32. */
#define FRAME_CLEAN_BYTES_MAX 1024

/* Types that LABEL_UNTYPED_RETYPE makes; of a device region only frames, and regions of a page or more. */
#define TYPE_UNTYPED        0 /* size bits: 4 to 26 */
#define TYPE_CNODE          1 /* size bits: radix, 1 to 12 */
#define TYPE_TCB            2
#define TYPE_ENDPOINT       3
#define TYPE_NOTIFICATION   4
#define TYPE_FRAME_4K       5
#define TYPE_FRAME_64K      6
#define TYPE_FRAME_1M       7
#define TYPE_FRAME_16M      8
#define TYPE_PAGE_TABLE     9
#define TYPE_PAGE_DIRECTORY 10
#define TYPE_CONTEXT        11 /* only where time is a capability */

/* Rights of copy, mint and map: the meaning of a bit depends on the object. */
#define RIGHT_SEND    1 /* endpoint, notification */
#define RIGHT_RECEIVE 2 /* endpoint, notification */
#define RIGHT_GRANT   4 /* endpoint */
#define RIGHT_READ    1 /* frame: always implied */
#define RIGHT_WRITE   2 /* frame */
#define RIGHTS_ALL    7

#define MAP_EXECUTE   1 /* instructions may be fetched; refused for device frames */
#define MAP_UNCACHED  2 /* not for a message buffer: the kernel reaches it through its cache */

/*
 * Labels of fault messages.  Words: pc, sp, cpsr, fault address, fault status.
 * Answer with label 0 to resume; the words of the answer, as many as there are,
 * replace pc, sp and the flags of cpsr, the state of an IT block and the byte order
 * included; another pc alone is in no IT block.  Any other label leaves the thread stopped.
 */
#define FAULT_UNDEFINED      1
#define FAULT_PREFETCH_ABORT 2
#define FAULT_DATA_ABORT     3
#define FAULT_WORDS          5
#define FAULT_TIMEOUT        4 /* only where time is a capability; instead of the fault address: why */
#define TIMEOUT_BUDGET       0 /* its budget is used up */
#define TIMEOUT_CRITICALITY  1 /* its time was donated by a thread that is less critical than the system */

/* The message buffer: 128 words, aligned to its 512 bytes, in a frame. */
#define MESSAGE_WORDS_MAX  120
#define MESSAGE_REGISTERS  4
#define EXTRA_CAPS_MAX     3
#define IPC_BUFFER_BYTES   512
#define BUFFER_WORDS       1   /* index of message word 0 */
#define BUFFER_CAPS        122 /* addresses of capabilities to send; badges received */
#define BUFFER_RECEIVE_ROOT  125 /* address of a CNode */
#define BUFFER_RECEIVE_INDEX 126 /* slot below it, which must be empty */
#define BUFFER_RECEIVE_DEPTH 127 /* bits of the index */

#define BADGE_BITS 28
#define PRIORITIES 256
#define CRITICALITIES 4
#define PERIOD_TICKS_MAX 0x3fffffff /* ticks */

/* Slots of the first thread's capability space (one CNode, 32-bit addresses). */
#define ROOT_CNODE          1
#define ROOT_TCB            2
#define ROOT_PAGE_DIRECTORY 3
#define ROOT_IRQ_CONTROL    4
#define ROOT_PAGE_TABLE     5
#define ROOT_BUFFER_FRAME   6
#define ROOT_INFO_FRAME     7
#define ROOT_UART_FRAME     8
#define ROOT_TIMER_FRAME    9
#define ROOT_FRAME_1M       10
#define ROOT_FRAME_16M      11
#define ROOT_ASID_CONTROL   12 /* this and the next: only where address spaces have numbers */
#define ROOT_ASID_POOL      13 /* the first thread's directory has a number of it */
#define ROOT_SCHED_CONTROL  14 /* this and the next: only where time is a capability */
#define ROOT_CONTEXT        15 /* of the first thread: it runs by turns with its equals */
#define ROOT_UNTYPED        16 /* up to 16 of them */
#define ROOT_IMAGE          32 /* the frames of the program, in order */
#define ROOT_DEVICE         224 /* up to 32 device regions */
#define ROOT_FREE           256 /* first slot that is surely empty */
#define ROOT_RADIX          15

/* Where the first thread finds itself; its program begins at IMAGE_BASE. */
#define IMAGE_BASE    0x00100000
#define ROOT_INFO     0x001fd000
#define ROOT_BUFFER   0x001fe000
#define IMAGE_BYTES_MAX 0xc0000

/* First words of a program image. */
#define IMAGE_MAGIC   0x424c4259
#define IMAGE_TEXT_BYTES  4 /* offset: bytes that are mapped executable, read-only */
#define IMAGE_BYTES       8 /* offset: bytes in all, cleared memory included */
#define IMAGE_ENTRY      12 /* offset: first instruction */

#ifndef __ASSEMBLER__
/* The kernel's information for the first thread, at ROOT_INFO. */
struct boot_info {
    unsigned int untyped_count;
    unsigned int untyped_bits[16]; /* log2 of the bytes of slot ROOT_UNTYPED + i */
    unsigned int text_frames;      /* slots ROOT_IMAGE onwards: executable ... */
    unsigned int image_frames;     /* ... then writable, this many in all */
    unsigned int device_count;
    unsigned int device_base[32];  /* first physical address of slot ROOT_DEVICE + i */
    unsigned int device_bits[32];  /* log2 of its bytes */
};
#endif

#endif
