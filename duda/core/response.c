// SPDX-License-Identifier: Apache-2.0
/*
 * The object `response`.
 */
#include "objects.h"
#include "request.h"

#include <stdarg.h>
#include <stdio.h>

static int set_status(duda_request_t *dr, int status)
{
    return mk_response_set_status(dr->req, status);
}

static int add_bytes(duda_request_t *dr, const char *data, int len)
{
    return mk_response_write_ref(dr->req, mk_str(data, (size_t)len)) < 0 ? -1 : 0;
}

static int add_formatted(duda_request_t *dr, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(text))
        return -1;
    return mk_response_write(dr->req, mk_str(text, (size_t)n)) < 0 ? -1 : 0;
}

static int end(duda_request_t *dr, duda_request_fn done)
{
    dr->done = done;
    mk_response_end(dr->req);
    return 0;
}

const struct duda_api_response object_response = {
    .http_status = set_status,
    .print = add_bytes,
    .printf = add_formatted,
    .end = end,
};
