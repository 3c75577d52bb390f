/* SPDX-License-Identifier: BSD-2-Clause */
/* See aes_cipher.h.  The S-box is computed when it is first needed. */
#include "aes_cipher.h"

static byte sbox[256];

/* Times x in the field of 256 elements. */
static byte twice(byte value)
{
    return (byte)(value << 1 ^ (value & 0x80 ? 0x1b : 0));
}

static byte rotated(byte value, word_t bits)
{
    return (byte)(value << bits | value >> (8 - bits));
}

/* 3 generates all elements but 0: "power" and "inverse" go through them in opposite orders. */
static void make_sbox(void)
{
    byte power = 1;
    byte inverse = 1;

    do {
        power = power ^ twice(power); /* times 3 */
        inverse ^= (byte)(inverse << 1); /* times its inverse, 0xf6 */
        inverse ^= (byte)(inverse << 2);
        inverse ^= (byte)(inverse << 4);
        if (inverse & 0x80)
            inverse ^= 0x09;
        sbox[power] = inverse ^ rotated(inverse, 1) ^ rotated(inverse, 2) ^ rotated(inverse, 3)
            ^ rotated(inverse, 4) ^ 0x63;
    } while (power != 1);
    sbox[0] = 0x63;
}

/* Each key of a round is the one before, and the result of its last word. */
void aes_expand(struct aes_key *key, const byte bytes[AES_BYTES])
{
    byte constant = 1;

    if (sbox[0] == 0)
        make_sbox();
    for (word_t i = 0; i < AES_BYTES; i++)
        key->round[0][i] = bytes[i];
    for (word_t round = 1; round <= AES_ROUNDS; round++) {
        const byte *before = key->round[round - 1];
        byte *now = key->round[round];

        for (word_t i = 0; i < 4; i++)
            now[i] = before[i] ^ sbox[before[12 + ((i + 1) & 3)]];
        now[0] ^= constant;
        for (word_t i = 4; i < AES_BYTES; i++)
            now[i] = before[i] ^ now[i - 4];
        constant = twice(constant);
    }
}

static void add_key(byte *block, const byte *key)
{
    for (word_t i = 0; i < AES_BYTES; i++)
        block[i] ^= key[i];
}

/* Bytes are replaced, and row i is rotated by i columns; a column is four bytes. */
static void replace_and_shift(byte *block)
{
    byte old[AES_BYTES];

    for (word_t i = 0; i < AES_BYTES; i++)
        old[i] = sbox[block[i]];
    for (word_t i = 0; i < AES_BYTES; i++)
        block[i] = old[(i + 4 * (i & 3)) & 15];
}

static void mix_column(byte *column)
{
    byte first = column[0];
    byte all = column[0] ^ column[1] ^ column[2] ^ column[3];

    for (word_t i = 0; i < 4; i++)
        column[i] ^= all ^ twice(column[i] ^ (i < 3 ? column[i + 1] : first));
}

void aes_encrypt(const struct aes_key *key, byte block[AES_BYTES])
{
    add_key(block, key->round[0]);
    for (word_t round = 1; round <= AES_ROUNDS; round++) {
        replace_and_shift(block);
        if (round < AES_ROUNDS)
            for (word_t column = 0; column < AES_BYTES; column += 4)
                mix_column(block + column);
        add_key(block, key->round[round]);
    }
}
