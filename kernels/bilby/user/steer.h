/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef USER_STEER_H
#define USER_STEER_H

#include "tests.h"

extern const struct test message_tests[], creation_tests[], deletion_tests[], interrupt_tests[];

#endif
