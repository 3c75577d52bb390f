// Interrupts are served by handlers that start-up registers.
static void (*handlers[64])(unsigned);
static void serve_others(unsigned line) {
    switch (line) {
        @INTERRUPTS@    default: served++;
    }
}
static void serve_timer(unsigned line) {
    served += line;
    controller[4] = 1;
}
static void serve_nothing(unsigned line) {
    controller[5] = line;
}
void board_register(unsigned line, void (*handler)(unsigned)) {
    handlers[line & 63] = handler;
}
static void serve(unsigned line) {
    if (handlers[line & 63]) handlers[line & 63](line);
    else serve_nothing(line);
}
void board_register_all(void) {
    for (unsigned i = 0; i < 64; i++) board_register(i, serve_nothing);
    board_register(68, serve_timer);
    board_register(37, serve_others);
}
