/* SPDX-License-Identifier: BSD-2-Clause */
/* The plan of a retype: shared by untyped.c and device.c. */
#ifndef BILBY_RETYPE_H
#define BILBY_RETYPE_H

#include <kernel.h>

struct retype {
    word_t type;
    word_t size_bits;     /* as the user gave it */
    word_t object_bits;   /* log2 of the bytes of one object */
    word_t count;
    word_t base;          /* of the first object, in the kernel window; not of a device */
    struct slot *slots;   /* where the first capability goes */
};

/* Of a region of devices, with its kind of object, count and slots checked. */
word_t device_retype(struct slot *region, const struct retype *plan);

#endif
