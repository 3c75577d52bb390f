/* SPDX-License-Identifier: BSD-2-Clause */
/* Each address is looked up when it is needed, and all of a call's without a pause. */
#include <kernel.h>
#include <lookup.h>

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits)
{
    return cspace_resolve(root, address, bits);
}
