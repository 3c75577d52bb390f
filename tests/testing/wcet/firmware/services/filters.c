// A filter with coefficients, a controller in soft float, and a square root.
//! declared: int filter_sample(int); int filter_control(int);
//! interrupt: filter_sample((int)controller[8]);
//! call: return filter_control((int)argument);
//! TAPS: 8
//! TAPS: 16
//! TAPS: 31
//! REAL: float
//! REAL: double
static int history[@TAPS@], place;
static const short weights[@TAPS@] = { 3, -7, 11, 90, 12 };
int filter_sample(int sample) {
    long long sum = 0;
    history[place] = sample;
    place = (place + 1) % @TAPS@;
    for (int i = 0; i < @TAPS@; i++) sum += (long long)history[(place + i) % @TAPS@] * weights[i];
    return (int)(sum >> 8);
}
static @REAL@ integral, last;
static unsigned root(unsigned n) {
    unsigned r = 0, b = 1u << 30;
    while (b > n) b >>= 2;
    while (b) {
        if (n >= r + b) {
            n -= r + b;
            r = (r >> 1) + b;
        } else r >>= 1;
        b >>= 2;
    }
    return r;
}
int filter_control(int error) {
    @REAL@ e = (@REAL@)error / 16;
    integral += e * (@REAL@)0.125;
    if (integral > 1000) integral = 1000;
    @REAL@ out = e * 2 + integral + (e - last) * (@REAL@)0.5;
    last = e;
    return (int)out + (int)root((unsigned)error);
}
