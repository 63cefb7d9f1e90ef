// SPDX-License-Identifier: Apache-2.0
/*
 * Short texts of numbers, by value.
 */
#ifndef SHELL_CELL_H
#define SHELL_CELL_H

#include "text.h"

enum { CELL_BYTES = 64 };

struct cell {
    char text[CELL_BYTES];
};

/* Return what the functions of text.h append, and the suffix. */
struct cell cell_bytes(double n, const char *suffix);
struct cell cell_rate(double n, const char *suffix);
struct cell cell_seconds(long long n);
/* A dash for 0: no request has ended. */
struct cell cell_us(uint64_t us);

#endif
