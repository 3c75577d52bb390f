// Interrupts are served by a switch.
static void serve(unsigned line) {
    switch (line) {
        @INTERRUPTS@    default: served++;
    }
}
void board_register_all(void) {
}
