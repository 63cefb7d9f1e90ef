// SPDX-License-Identifier: Apache-2.0
/*
 * Adds to lines of the log in a handler of a signal (line.h).
 */
#include "crash/line.h"

void line_add_bytes(struct line *l, const char *data, size_t n)
{
    for (size_t i = 0; i < n && l->len + 1 < l->size; i++)
        l->data[l->len++] = (unsigned char)data[i] < ' ' || data[i] == 0x7f ? '?' : data[i];
    l->data[l->len] = '\0';
}

void line_add(struct line *l, const char *text)
{
    while (*text && l->len + 1 < l->size)
        l->data[l->len++] = *text++;
    l->data[l->len] = '\0';
}

void line_add_number(struct line *l, uintptr_t n, unsigned base)
{
    char digits[2 + sizeof(n) * 3], *at = digits + sizeof(digits) - 1;
    *at = '\0';
    do
        *--at = "0123456789abcdef"[n % base];
    while (n /= base);
    line_add(l, base == 16 ? "0x" : "");
    line_add(l, at);
}
