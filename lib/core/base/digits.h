// SPDX-License-Identifier: Apache-2.0
/* Writes numbers: in the head of each response, where the functions of printf() would cost a twentieth of it. */
#ifndef MK_BASE_DIGITS_H
#define MK_BASE_DIGITS_H

#include <stdint.h>

enum { MK__DIGITS_MAX = 20 };

/* Writes a number in decimal, at most MK__DIGITS_MAX bytes, without a NUL. Returns where the next byte goes. */
static inline char *mk__digits_write(char *to, uint64_t value)
{
    char *end = to + 1;
    for (uint64_t left = value; left >= 10; left /= 10)
        end++;
    for (char *digit = end; digit > to; value /= 10)
        *--digit = (char)('0' + value % 10);
    return end;
}

#endif
