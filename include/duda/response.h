// SPDX-License-Identifier: Apache-2.0
/*
 * The object `response`: a status, headers, and a queue of parts that are sent in order.
 */
#ifndef DUDA_RESPONSE_H
#define DUDA_RESPONSE_H

#include "types.h"

struct duda_api_response {
    /* Sets the status, 200 to 599; without this call it is 200. Returns 0, -EINVAL or -EALREADY (the head was sent). */
    int (*http_status)(duda_request_t *dr, int status);
    /* Adds `len` bytes without a copy: they must not change until the response is complete. Returns 0 or -1. */
    int (*print)(duda_request_t *dr, const char *data, int len);
    /* Adds formatted text. Returns 0 or -1. */
    int (*printf)(duda_request_t *dr, const char *format, ...) DUDA_PRINTF(2, 3);
    /* Completes the response. Calls `done`, unless NULL, once the response was sent or the client has left. */
    int (*end)(duda_request_t *dr, duda_request_fn done);
};

DUDA_OBJECT(struct duda_api_response, response)

#endif
