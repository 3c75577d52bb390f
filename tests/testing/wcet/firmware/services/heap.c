// A first-fit heap with merging, and a pool with a bitmap.
//! declared: void *heap_take(unsigned); void heap_free(void *); int pool_take(void);
//! interrupt: pool_take();
//! call: heap_free(heap_take(argument));
//! BYTES: 0x400
//! BYTES: 0x1000
typedef struct block {
    unsigned size;
    struct block *next;
} block;
static union {
    block first;
    char bytes[@BYTES@];
} area;
static block *free_list;
static unsigned started, bits[4];
void *heap_take(unsigned size) {
    if (!started) {
        started = 1;
        area.first.size = sizeof area;
        area.first.next = 0;
        free_list = &area.first;
    }
    size = (size + sizeof(block) + 7) & ~7u;
    for (block **at = &free_list; *at; at = &(*at)->next) {
        block *b = *at;
        if (b->size < size) continue;
        if (b->size - size > 2 * sizeof(block)) {
            block *rest = (block *)((char *)b + size);
            rest->size = b->size - size;
            rest->next = b->next;
            *at = rest;
            b->size = size;
        }
        else *at = b->next;
        return b + 1;
    }
    return 0;
}
void heap_free(void *p) {
    if (!p) return;
    block *b = (block *)p - 1, *at = free_list, *before = 0;
    while (at && at < b) {
        before = at;
        at = at->next;
    }
    b->next = at;
    if (before) before->next = b;
    else free_list = b;
    if (at && (char *)b + b->size == (char *)at) {
        b->size += at->size;
        b->next = at->next;
    }
    if (before && (char *)before + before->size == (char *)b) {
        before->size += b->size;
        before->next = b->next;
    }
}
int pool_take(void) {
    for (int w = 0; w < 4; w++) if (~bits[w]) for (int b = 0; b < 32; b++) if (!(bits[w] >> b & 1)) {
        bits[w] |= 1u << b;
        return w * 32 + b;
    }
    return -1;
}
