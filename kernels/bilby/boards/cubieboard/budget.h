/* SPDX-License-Identifier: BSD-2-Clause */
/* Written by campaigns/minimum_budget.py: how long the kernel takes, at worst, until it is left. */
#ifndef BILBY_BUDGET_H
#define BILBY_BUDGET_H

#define BUDGET_MIN 29427 /* ticks */

#endif
