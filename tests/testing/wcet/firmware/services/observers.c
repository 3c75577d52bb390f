// Observers in an array, registered while running, and a driver behind opaque handles.
//! declared: void observers_tell(unsigned); int observers_add(unsigned); long device_write(int, const void *, unsigned);
//! interrupt: observers_tell(line);
//! call: device_write((int)argument, &served, 4); return (unsigned)observers_add(argument);
//! MOST: 4
//! MOST: 8
typedef void (*observer)(void *context, unsigned event);
static struct {
    observer tell;
    void *context;
}
all[@MOST@];
static unsigned count;
static unsigned log_words[16], log_at;
static void to_log(void *context, unsigned event) {
    ((unsigned *)context)[log_at++ & 15] = event;
}
static void to_count(void *context, unsigned event) {
    *(unsigned *)context += event;
}
static void to_device(void *context, unsigned event) {
    *(volatile unsigned *)context = event;
}
void observers_tell(unsigned event) {
    for (unsigned i = 0; i < count; i++) all[i].tell(all[i].context, event);
}
static int add(observer tell, void *context) {
    if (count == @MOST@) return -1;
    all[count].tell = tell;
    all[count].context = context;
    return (int)count++;
}
int observers_add(unsigned kind) {
    switch (kind) {
        case 0: return add(to_log, log_words);
        case 1: return add(to_count, &log_at);
        case 2: return add(to_device, (void *)0x44E07000);
        default: return -1;
    }
}
typedef long (*writer)(void *, const void *, unsigned);
static long write_words(void *state, const void *from, unsigned n) {
    const unsigned *w = from;
    for (unsigned i = 0; i < n / 4; i++) *(volatile unsigned *)0x44E07004 = w[i];
    return n;
}
static long write_null(void *state, const void *from, unsigned n) {
    return n;
}
static struct device {
    const char *name;
    writer write;
    void *state;
}
devices[4] = { { "null", write_null }, { "port", write_words } };
long device_write(int handle, const void *from, unsigned n) {
    if (handle < 0 || handle >= 4 || !devices[handle].write) return -1;
    return devices[handle].write(devices[handle].state, from, n);
}
