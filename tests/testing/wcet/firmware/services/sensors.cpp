// Virtual calls: an abstract class, two levels of inheritance, and a list of objects.
//! declared: int sensors_poll(int); void *sensors_find(unsigned);
//! interrupt: sensors_poll((int)line);
//! call: return (unsigned)sensors_find(argument);
//! FAILED: virtual void
//! FAILED: void
namespace board {
    volatile unsigned *const converter = (volatile unsigned *)0x44E0D000;
    struct Sensor {
        Sensor *next;
        int failures;
        Sensor() : next(0), failures(0) {
        }
        virtual int read(int channel) = 0;
        virtual int scale(int v) const {
            return v;
        }
        @FAILED@ failed(int v) {
            failures += v;
        }
    };
    struct Raw : Sensor {
        int read(int c) override {
            return (int)converter[c & 7];
        }
    };
    struct Scaled : Raw {
        int factor;
        Scaled() : factor(3) {
        }
        int scale(int v) const override {
            return v * factor;
        }
    };
    struct Average : Sensor {
        int sum[4], at;
        int read(int c) override {
            sum[at++ & 3] = (int)converter[c & 7];
            return (sum[0] + sum[1] + sum[2] + sum[3]) / 4;
        }
    };
    Raw raw;
    Scaled scaled;
    Average average;
    Sensor *first;
    void add(Sensor *s) {
        s->next = first;
        first = s;
    }
}
extern "C" void __cxa_pure_virtual() {
    for (;;) ;
}
extern "C" int sensors_poll(int channel) {
    int worst = 0;
    for (board::Sensor *s = board::first; s; s = s->next) {
        int v = s->scale(s->read(channel));
        if (v < 0) s->failed(v);
        if (v > worst) worst = v;
    }
    return worst;
}
extern "C" void *sensors_find(unsigned n) {
    static bool added;
    if (!added) {
        added = true;
        board::add(&board::raw);
        board::add(&board::scaled);
        board::add(&board::average);
    }
    board::Sensor *s = board::first;
    while (s && n--) s = s->next;
    return s;
}
