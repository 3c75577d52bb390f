/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of devices, out of the regions that boot gives the first thread.
 *
 *     word_t slots = new_slots(DEVICE_SLOTS), frame;
 *
 *     if (device_frame(info, 0x53fcc000, slots, &frame) == ERROR_NONE)
 *         frame_map(frame, ROOT_PAGE_DIRECTORY, 0x10000000, RIGHT_WRITE, 0);
 *
 * A region is used from its first page on: the pages before the wanted page are made into smaller
 * regions, which can be used like any other, and stand in the slots before the frame's.
 */
#ifndef USER_DEVICE_H
#define USER_DEVICE_H

#include "bilby.h"

#define DEVICE_SLOTS 15 /* that one frame may need */

/*
 * A 4 KiB frame of this physical address, a multiple of 4 KiB, into the first of these slots of the
 * first thread's CNode that is left; "frame" tells which.  ERROR_RANGE: boot gave no region with the
 * address.  ERROR_NO_MEMORY: something was made of that page, or of one behind it, already; smaller
 * regions that were made until then stay.
 */
word_t device_frame(const struct boot_info *info, word_t physical, word_t slots, word_t *frame);

#endif
