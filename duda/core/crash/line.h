// SPDX-License-Identifier: Apache-2.0
/*
 * A line of the log that a handler of a signal writes: no memory, no locale. What does not fit is cut.
 */
#ifndef DUDA_CORE_CRASH_LINE_H
#define DUDA_CORE_CRASH_LINE_H

#include <stddef.h>
#include <stdint.h>

struct line {
    char *data;
    size_t len, size; /* `size` includes the NUL */
};

void line_add(struct line *l, const char *text);
/* Control characters become '?'. */
void line_add_bytes(struct line *l, const char *data, size_t n);
/* base: 10, or 16 with "0x". */
void line_add_number(struct line *l, uintptr_t n, unsigned base);

#endif
