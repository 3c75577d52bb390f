/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The start of a program from the loader: the slots of its own capability space, in which an
 * address is the number of a slot.  Slots without a given capability are empty.  main()'s argument
 * is the number passed to process_start().
 */
#ifndef USER_PROGRAM_H
#define USER_PROGRAM_H

#define OWN_RADIX        8 /* log2 of its slots */
#define OWN_CNODE        1
#define OWN_THREAD       2
#define OWN_DIRECTORY    3
#define OWN_SECOND       4 /* a second thread, not started: process_second() */
#define OWN_FAULTS       5 /* who is told of its faults */
#define CONSOLE_OUTPUT   6 /* console_client.h */
#define CONSOLE_INPUT    7
#define OWN_LINE         8 /* handler of an interrupt line */
#define OWN_INTERRUPTS   9 /* the notification that it signals */
#define OWN_SIGNALS     10 /* another notification */
#define OWN_MEMORY      11 /* untyped */
#define OWN_FREE        16

#define DEVICE_ADDRESS  0x001fb000u /* where its device is mapped */

#endif
