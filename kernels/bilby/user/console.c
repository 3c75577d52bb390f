/* SPDX-License-Identifier: BSD-2-Clause */
/* Output through the UART frame that the program mapped at UART_ADDRESS. */
#include "bilby.h"
#include <devices.h>

void put_char(char c)
{
    while (uart_is_full(UART_ADDRESS))
        ;
    uart_put(UART_ADDRESS, c);
}
