/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest program: map the UART, say so in TAP, end. */
#include "bilby.h"

int main(void);

int main(void)
{
    if (frame_map(ROOT_UART_FRAME, ROOT_PAGE_DIRECTORY, UART_ADDRESS, RIGHT_WRITE, 0))
        return 2;
    put_string("1..1\nok 1 - the first thread runs and prints\n");
    return 0;
}
