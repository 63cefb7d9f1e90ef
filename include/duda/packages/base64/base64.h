// SPDX-License-Identifier: Apache-2.0
/*
 * The package base64 (RFC 4648). All functions are for any thread. They return new memory with a NUL after it, which
 * `*ret_len`, that may be NULL, does not count: free() it, or give it to gc->add(). NULL: without memory, or for
 * decode() and decode_url() the text is wrong; `*ret_len` is then 0.
 */
#ifndef DUDA_PACKAGES_BASE64_H
#define DUDA_PACKAGES_BASE64_H

#include "../../package.h"

/* Services of the original API have decode() as it was. */
#if DUDA_API_LEVEL < 3
#define DUDA_BASE64_DECODE decode_strict
#define DUDA_BASE64_DECODE_OLD decode
#else
#define DUDA_BASE64_DECODE decode
#define DUDA_BASE64_DECODE_OLD decode_old
#endif

struct duda_api_base64 {
    /* Returns a text with "+", "/" and "=" (section 4), without line breaks. */
    unsigned char *(*encode)(const void *data, size_t len, size_t *ret_len);
    /*
     * Returns what a text of encode() encodes. Blanks, tabs and line breaks in it are ignored; other bytes, a wrong
     * length, missing "=", and bits that belong to no byte are errors.
     */
    unsigned char *(*DUDA_BASE64_DECODE)(const void *text, size_t len, size_t *ret_len);

    /* Returns a text for URLs, file names, cookies and tokens: with "-" and "_" and without "=" (section 5). */
    char *(*encode_url)(const void *data, size_t len, size_t *ret_len);
    /* Returns what a text of encode_url() encodes, which has nothing else in it. */
    void *(*decode_url)(const void *text, size_t len, size_t *ret_len);

    /* As decode(), but ignores all bytes that are not of the alphabet, and what follows the "=" at the end. */
    unsigned char *(*DUDA_BASE64_DECODE_OLD)(const void *text, size_t len, size_t *ret_len);
};

#undef DUDA_BASE64_DECODE
#undef DUDA_BASE64_DECODE_OLD

DUDA_PACKAGE(struct duda_api_base64, base64)

#endif
