// Sorting with a function that compares, a search, and a table of hashes with chains.
//! declared: unsigned sort_all(int); int hash_find(unsigned);
//! interrupt: hash_find(line);
//! call: return sort_all((int)argument & 1);
//! COUNT: 8
//! COUNT: 20
//! SORT: for (int i = 1; i < n; i++) { unsigned k = a[i]; int j = i; while (j > 0 && before(k, a[j - 1])) { a[j] = a[j - 1]; j--; } a[j] = k; }
//! SORT: for (int i = 0; i < n - 1; i++) { int least = i; for (int j = i + 1; j < n; j++) if (before(a[j], a[least])) least = j; unsigned k = a[i]; a[i] = a[least]; a[least] = k; }
static unsigned words[@COUNT@];
struct node {
    struct node *next;
    unsigned key, value;
};
static struct node *chains[16], nodes[32];
static int less(unsigned a, unsigned b) {
    return a < b;
}
static int more(unsigned a, unsigned b) {
    return a > b;
}
static void sort(unsigned *a, int n, int (*before)(unsigned, unsigned)) {
    @SORT@
}
static int search(unsigned key) {
    int low = 0, high = @COUNT@ - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (words[middle] == key) return middle;
        if (words[middle] < key) low = middle + 1;
        else high = middle - 1;
    }
    return -1;
}
unsigned sort_all(int down) {
    if (down) sort(words, @COUNT@, more);
    else sort(words, @COUNT@, less);
    return (unsigned)search(words[3]);
}
int hash_find(unsigned key) {
    for (struct node *n = chains[key * 2654435761u >> 28]; n; n = n->next) if (n->key == key) return (int)n->value;
    static unsigned used;
    struct node *n = &nodes[used++ & 31];
    n->key = key;
    n->value = used;
    n->next = chains[key * 2654435761u >> 28];
    chains[key * 2654435761u >> 28] = n;
    return -1;
}
