// SPDX-License-Identifier: Apache-2.0
/*
 * The package base64.
 */
#ifndef DUDA_PACKAGES_BASE64_H
#define DUDA_PACKAGES_BASE64_H

#include "../../package.h"

struct duda_api_base64 {
    /* Returns a new string with a NUL behind it, without line breaks; free() it. NULL without memory. */
    unsigned char *(*encode)(const unsigned char *data, size_t len, size_t *ret_len);
    /* Returns new memory with a NUL behind it; free() it. NULL: it is not base64, or no memory. */
    unsigned char *(*decode)(const unsigned char *text, size_t len, size_t *ret_len);
};

DUDA_PACKAGE(struct duda_api_base64, base64)

#endif
