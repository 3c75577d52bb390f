// A ring buffer, and a protocol with a checksum as a state machine over bytes.
//! declared: void receiver_take(void); int receiver_step(void);
//! interrupt: receiver_take();
//! call: return receiver_step();
//! SIZE: 32
//! SIZE: 64
//! SIZE: 0x80
//! PAYLOAD: 8
//! PAYLOAD: 16
//! PAYLOAD: 32
//! SUM: sum ^= b; for (int i = 0; i < 8; i++) sum = sum & 1 ? sum >> 1 ^ 0xEDB88320 : sum >> 1;
//! SUM: sum += b; sum = (sum & 0xFF) + (sum >> 8);
//! SUM: sum = sum >> 8 ^ table[(sum ^ b) & 0xFF];
#define DEVICE(n) (*(volatile unsigned *)(0x44E09000 + (n)))
static volatile unsigned char ring[@SIZE@];
static volatile unsigned head, tail;
static unsigned table[256], sum;
static unsigned char frame[@PAYLOAD@];
static unsigned place, length, good, bad;
static enum { FIND, LENGTH, BODY, CHECK, ESCAPE } state;
void receiver_take(void) {
    while (DEVICE(0x14) & 1) {
        unsigned char b = DEVICE(0);
        if (head - tail < @SIZE@) ring[head++ % @SIZE@] = b;
    }
}
static void add(unsigned char b) {
    @SUM@
}
static void byte(unsigned char b) {
    switch (state) {
        case FIND: if (b == 0x7E) {
            state = LENGTH;
            sum = 0;
        }
        break;
        case LENGTH: length = b;
        place = 0;
        state = b <= @PAYLOAD@ ? BODY : FIND;
        add(b);
        break;
        case BODY: if (b == 0x7D) {
            state = ESCAPE;
            break;
        }
        frame[place++] = b;
        add(b);
        if (place == length) state = CHECK;
        break;
        case ESCAPE: frame[place++] = b ^ 0x20;
        add(b ^ 0x20);
        state = place == length ? CHECK : BODY;
        break;
        case CHECK: if ((sum & 0xFF) == b) good++;
        else bad++;
        state = FIND;
        break;
    }
}
int receiver_step(void) {
    int n = 0;
    while (tail != head) {
        byte(ring[tail++ % @SIZE@]);
        n++;
    }
    return n;
}
