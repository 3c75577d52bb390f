// Encodings of bytes, rounds of a cipher, and a tree that is walked recursively.
//! declared: unsigned codec_encode(unsigned char *, unsigned); extern unsigned char codec_bytes[]; int tree_depth(void);
//! call: return codec_encode(codec_bytes, 24) + (unsigned)tree_depth();
//! ROUNDS: 8
//! ROUNDS: 20
//! ROUNDS: 32
unsigned char codec_bytes[32];
static unsigned char encoded[64];
static unsigned key[4] = { 1, 2, 3, 4 };
static void cipher(unsigned v[2]) {
    unsigned a = v[0], b = v[1], s = 0;
    for (int i = 0; i < @ROUNDS@; i++) {
        a += (b << 4 ^ b >> 5) + b ^ s + key[s & 3];
        s += 0x9E3779B9;
        b += (a << 4 ^ a >> 5) + a ^ s + key[s >> 11 & 3];
    }
    v[0] = a;
    v[1] = b;
}
unsigned codec_encode(unsigned char *from, unsigned length) {
    unsigned at = 1, code = 1, mark = 0;
    while (length--) {
        if (*from) {
            encoded[at++] = *from;
            code++;
        }
        if (!*from || code == 255) {
            encoded[mark] = code;
            mark = at++;
            code = 1;
        }
        from++;
    }
    encoded[mark] = code;
    unsigned v[2] = { at, mark };
    cipher(v);
    return v[0] ^ v[1];
}
struct tree {
    struct tree *left, *right;
    int value;
};
static struct tree trees[7];
__attribute__((noinline)) static int depth(const struct tree *t) {
    if (!t) return 0;
    int l = depth(t->left), r = depth(t->right);
    return 1 + (l > r ? l : r);
}
int tree_depth(void) {
    return depth(trees);
}
