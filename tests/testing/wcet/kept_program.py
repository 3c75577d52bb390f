"""A small program with a loop that is proved, one that is not, and a choice; how it is linked."""

from __future__ import annotations

CODE = "-Wl,-Ttext=0xf0010000"
PROGRAM = """\
unsigned table[8];
struct item { struct item *next; unsigned value; };
__attribute__((noinline)) unsigned work(unsigned a) {
    unsigned x = a;
    for (unsigned i = 0; i < 8; i++)
        x += table[i];
    return x;
}
unsigned pick(unsigned a, unsigned b) {
    unsigned x = 1;
    if (a & 1)
        x += work(a);
    if (a & 2)
        x += work(b);
    return x;
}
unsigned drain(struct item *at) {
    unsigned sum = 0;
    while (at) {
        sum += at->value;
        at = at->next;
    }
    return sum;
}
unsigned main(unsigned a) { return pick(a, 2); }
"""
