// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes by their offset: a wrong place shows, as the period is a prime number.
 */
#ifndef MK_UNIT_SPOOL_PATTERN_H
#define MK_UNIT_SPOOL_PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PATTERN_BYTES = 65521 };

static const char *get_pattern(void)
{
    static char pattern[PATTERN_BYTES];
    uint32_t x = 1;
    if (!pattern[0])
        for (int i = 0; i < PATTERN_BYTES; i++)
            pattern[i] = (char)((x = x * 1103515245 + 12345) >> 16 | 1);
    return pattern;
}

/* Fills `n` bytes with those from the offset `at` on. */
static void fill_pattern(char *to, size_t n, uint64_t at)
{
    while (n) {
        size_t from = at % PATTERN_BYTES, part = n < PATTERN_BYTES - from ? n : PATTERN_BYTES - from;
        memcpy(to, get_pattern() + from, part);
        to += part;
        at += part;
        n -= part;
    }
}

/* Returns whether the bytes are those from the offset `at` on. */
static bool is_pattern(const char *bytes, size_t n, uint64_t at)
{
    while (n) {
        size_t from = at % PATTERN_BYTES, part = n < PATTERN_BYTES - from ? n : PATTERN_BYTES - from;
        if (memcmp(bytes, get_pattern() + from, part) != 0)
            return false;
        bytes += part;
        at += part;
        n -= part;
    }
    return true;
}

#endif
