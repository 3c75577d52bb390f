/* SPDX-License-Identifier: BSD-2-Clause */
/* AES with keys of 128 bits (FIPS-197): encryption of one block. */
#ifndef USER_AES_CIPHER_H
#define USER_AES_CIPHER_H

#include "bilby.h"

#define AES_BYTES  16 /* of a block, and of a key */
#define AES_ROUNDS 10

typedef unsigned char byte;

struct aes_key {
    byte round[AES_ROUNDS + 1][AES_BYTES];
};

void aes_expand(struct aes_key *key, const byte bytes[AES_BYTES]);
void aes_encrypt(const struct aes_key *key, byte block[AES_BYTES]);

#endif
