// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `response`. All calls return 0, or -1 for an error.
 */
#ifndef DUDA_COMPAT_RESPONSE_H
#define DUDA_COMPAT_RESPONSE_H

#include "types.h"

struct duda_old_response {
    int (*http_status)(duda_request_t *dr, int status);
    /* Add a header line, "Name: value". */
    int (*http_header)(duda_request_t *dr, const char *row);
    int (*http_header_n)(duda_request_t *dr, const char *row, int len);
    /* Sets Content-Type by a file name extension; -1 if it is not known. */
    int (*http_content_type)(duda_request_t *dr, const char *extension);
    /* Sets Content-Length instead of the sum of the parts; -1 leaves it out. */
    int (*http_content_length)(duda_request_t *dr, long length);
    int (*headers_off)(duda_request_t *dr);
    int (*send_headers)(duda_request_t *dr);
    /* print() copies up to 64 KB. More than that must be valid until the response was sent. */
    int (*print)(duda_request_t *dr, const char *data, int len);
    int (*printf)(duda_request_t *dr, const char *format, ...);
    int (*sendfile)(duda_request_t *dr, const char *path);
    int (*sendfile_range)(duda_request_t *dr, const char *path, off_t offset, size_t count);
    int (*wait)(duda_request_t *dr);
    int (*cont)(duda_request_t *dr);
    int (*finalize)(duda_request_t *dr, duda_request_fn done);
    int (*flush)(duda_request_t *dr);
    /* Names of print() and printf() until the summer of 2012. */
    int (*body_print)(duda_request_t *dr, const char *data, int len);
    int (*body_printf)(duda_request_t *dr, const char *format, ...);
    int (*body_write)(duda_request_t *dr, const char *data, int len);
};

DUDA_OBJECT_AS(struct duda_old_response, response, "response.1")

#ifndef DUDA_FRAMEWORK

/* response->end(dr, done) also returns from the calling function. Until the spring of 2012 it had no `done`. */
#define end(...) \
    finalize(DUDA_OLD_FIRST(__VA_ARGS__, 0), DUDA_OLD_SECOND(__VA_ARGS__, NULL, 0)), __extension__({ \
        return; \
        0; \
    })

/* Until the summer of 2012 http_header() had the length of the row. Other numbers of arguments are left alone. */
#define http_header(...) \
    DUDA_OLD_6TH(__VA_ARGS__, http_header, http_header, http_header_n, http_header, http_header, )(__VA_ARGS__)

#endif

#endif
