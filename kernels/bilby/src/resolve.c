/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of capability spaces are resolved (resolve.h). */
#include <kernel.h>
#include <resolve.h>

struct slot *cspace_resolve(const struct cap *root, word_t address, word_t bits)
{
    return resolve_marking(root, address, bits, 0);
}
