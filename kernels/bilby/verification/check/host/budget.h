/* SPDX-License-Identifier: BSD-2-Clause */
/* Small, so that a program of few operations uses up budgets. */
#ifndef BILBY_BUDGET_H
#define BILBY_BUDGET_H

#define BUDGET_MIN 100 /* ticks */
#define BUDGET_LEAST 160

#endif
