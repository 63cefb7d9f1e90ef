// SPDX-License-Identifier: Apache-2.0
/*
 * Checks whether a text is JSON (RFC 8259) within the limits of the package, before cJSON reads it: cJSON accepts
 * control characters, numbers such as "01", invalid UTF-8 and \u0000, and keeps its error in a variable of all threads.
 * Pure: bytes in, a result out; no allocation, no recursion.
 */
#ifndef DUDA_PACKAGES_JSON_SCAN_H
#define DUDA_PACKAGES_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scan_limits {
    size_t bytes;
    uint32_t values;
    unsigned depth; /* SCAN_DEPTH_MAX at most */
};

enum { SCAN_DEPTH_MAX = 512, SCAN_NUMBER_BYTES_MAX = 63 }; /* cJSON 1.7.15 cuts longer numbers */

struct scan_result {
    const char *error; /* a sentence without its full stop, or NULL */
    size_t begin, end; /* of the value; after an error `end` is where it was found */
    bool exponents;    /* a number has an exponent, so that it may be too large for a double */
};

/* Scans the value at the beginning of `len` bytes. Returns whether it is one; what follows it is not read. */
bool scan_value(const char *text, size_t len, const struct scan_limits *limits, struct scan_result *ret);
/* Scans a text that is one value, with white space around it. */
bool scan_text(const char *text, size_t len, const struct scan_limits *limits, struct scan_result *ret);

/* Returns the bytes of the UTF-8 character at `text`, whose first byte is not ASCII; 0: it is not UTF-8. */
size_t scan_character(const char *text, size_t n);

/* Counts lines and columns, from 1, up to a position. */
void scan_place(const char *text, size_t at, unsigned *ret_line, unsigned *ret_column);

#endif
