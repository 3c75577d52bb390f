/* SPDX-License-Identifier: BSD-2-Clause */
/* Written by campaigns/minimum_budget.py: how long the kernel takes, at worst, in ticks. */
#ifndef BILBY_BUDGET_H
#define BILBY_BUDGET_H

#define BUDGET_MIN 24479 /* until it is left; who is chosen has it */
#define BUDGET_OVERRUN 5648 /* until an alarm is handled */
#define BUDGET_LEAST (BUDGET_MIN + BUDGET_OVERRUN) /* that a context can have */

#endif
