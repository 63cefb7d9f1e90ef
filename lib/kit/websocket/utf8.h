// SPDX-License-Identifier: Apache-2.0
/*
 * Checks that text is UTF-8 (RFC 3629), piece by piece: surrogates, overlong forms and values above U+10FFFF are
 * errors. A piece is rejected if no continuation could make it valid, even if its last character is incomplete. Pure.
 */
#ifndef MK_WEBSOCKET_UTF8_H
#define MK_WEBSOCKET_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialized with zeros; text can begin again when mk__utf8_complete() is true. */
struct mk__utf8 {
    uint8_t left;     /* bytes that the last character still needs */
    uint8_t min, max; /* of the next one of them */
    bool bad;         /* an error was found: all calls fail */
};

/* Takes the next piece into account. Returns false if the text is not UTF-8. */
bool mk__utf8_feed(struct mk__utf8 *u, const void *bytes, size_t n);

/* Returns true if the text so far is UTF-8 and does not end within a character. */
static inline bool mk__utf8_complete(const struct mk__utf8 *u)
{
    return !u->left && !u->bad;
}

/* Returns true if `n` bytes are UTF-8. */
bool mk__utf8_is_valid(const void *bytes, size_t n);

/* Returns how many bytes at the beginning are complete valid characters. One byte at a time: for short texts. */
size_t mk__utf8_prefix(const void *bytes, size_t n);

#endif
