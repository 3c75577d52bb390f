/* SPDX-License-Identifier: BSD-2-Clause */
/* For the devices.h of each board. */
#ifndef BILBY_DEVICE_H
#define BILBY_DEVICE_H

#define DEVICE_REGISTER(address) (*(volatile unsigned int *)(address))

#endif
