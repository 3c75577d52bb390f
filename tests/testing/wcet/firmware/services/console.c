// A UART that is polled, and ``printf`` with variable arguments.
//! declared: void console_print(const char *, ...); void console_drain(void);
//! interrupt: console_drain();
//! call: console_print("call %d of %s: %x\n", number, "task", argument);
//! BIT: 1
//! BIT: 32
//! BIT: 0x80
//! STATUS: 20
//! STATUS: 24
//! STATUS: 4
#include <stdarg.h>
#define DEVICE(n) (*(volatile unsigned *)(0x44E09000 + (n)))
static char sent[64];
static volatile unsigned head, tail;
static void put(char c) {
    while (!(DEVICE(@STATUS@) & @BIT@)) ;
    DEVICE(0) = c;
}
void console_drain(void) {
    while (tail != head && (DEVICE(@STATUS@) & @BIT@)) DEVICE(0) = sent[tail++ & 63];
}
static void number(unsigned n, unsigned base, int width) {
    char digits[16];
    int i = 0;
    do {
        unsigned d = n % base;
        digits[i++] = d < 10 ? '0' + d : 'a' + d - 10;
        n /= base;
    }
    while (n);
    while (i < width && i < 16) digits[i++] = '0';
    while (i--) put(digits[i]);
}
void console_print(const char *form, ...) {
    va_list list;
    va_start(list, form);
    for (; *form; form++) {
        int width = 0;
        if (*form != '%') {
            if (*form == '\n') put('\r');
            put(*form);
            continue;
        }
        while (*++form >= '0' && *form <= '9') width = width * 10 + *form - '0';
        switch (*form) {
            case 'd': {
                int n = va_arg(list, int);
                if (n < 0) {
                    put('-');
                    n = -n;
                }
                number(n, 10, width);
                break;
            }
            case 'u': number(va_arg(list, unsigned), 10, width);
            break;
            case 'x': number(va_arg(list, unsigned), 16, width);
            break;
            case 's': {
                const char *s = va_arg(list, const char *);
                while (*s) put(*s++);
                break;
            }
            case 'c': put(va_arg(list, int));
            break;
            default: put(*form);
        }
    }
    va_end(list);
}
