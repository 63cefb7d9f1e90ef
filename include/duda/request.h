// SPDX-License-Identifier: Apache-2.0
/*
 * The object `request`: what the client has sent.
 */
#ifndef DUDA_REQUEST_H
#define DUDA_REQUEST_H

#include "types.h"

struct duda_api_request {
    /* Return the method as the client sent it ("GET"), and the decoded path; valid until the request ends. */
    const char *(*method)(duda_request_t *dr);
    const char *(*path)(duda_request_t *dr);
};

DUDA_OBJECT(struct duda_api_request, request)

#endif
