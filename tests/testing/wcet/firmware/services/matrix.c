// Products of matrices with constant sizes, statistics with divisions, and copies.
//! declared: int matrix_step(void); unsigned statistics(unsigned);
//! interrupt: statistics(line);
//! call: return (unsigned)matrix_step();
//! SIZE: 3
//! SIZE: 4
//! SIZE: 6
static int a[@SIZE@][@SIZE@], b[@SIZE@][@SIZE@], c[@SIZE@][@SIZE@];
static unsigned samples[16], at;
void *memmove(void *to, const void *from, unsigned n) {
    char *t = to;
    const char *f = from;
    if (t < f) while (n--) *t++ = *f++;
    else while (n--) t[n] = f[n];
    return to;
}
int matrix_step(void) {
    for (int i = 0; i < @SIZE@; i++) for (int j = 0; j < @SIZE@; j++) {
        int s = 0;
        for (int k = 0; k < @SIZE@; k++) s += a[i][k] * b[k][j];
        c[i][j] = s / 256;
    }
    memmove(a, c, sizeof a);
    return c[0][0];
}
unsigned statistics(unsigned sample) {
    samples[at++ % 16] = sample;
    unsigned long long sum = 0;
    unsigned most = 0;
    for (int i = 0; i < 16; i++) {
        sum += (unsigned long long)samples[i] * samples[i];
        if (samples[i] > most) most = samples[i];
    }
    return (unsigned)(sum / (most + 1));
}
