/* SPDX-License-Identifier: BSD-2-Clause */
/* Flags as the core has them that knows more of them. */
#include "../../machine/cortex-a8/flags.h"
