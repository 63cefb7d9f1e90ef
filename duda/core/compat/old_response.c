// SPDX-License-Identifier: Apache-2.0
/*
 * The original API: the object `response`. Errors are -1.
 */
#include "compat/old.h"

#include "common/api_error.h"
#include "log/message.h"
#include "objects.h"
#include "request/output.h"
#include "request/request.h"

enum { COPIED_BYTES_MAX = 64 * 1024 };

static int to_old_result(int result)
{
    return result < 0 ? -1 : 0;
}

/* ── the head ── */

static int set_status(duda_request_t *dr, int status)
{
    int err = object_response.http_status(dr, status);
    if (err == 0)
        dr->old_has_status = true;
    return to_old_result(err);
}

static int add_header(duda_request_t *dr, const char *row)
{
    return row ? to_old_result(object_response.http_header(dr, row)) : -1;
}

static int add_header_n(duda_request_t *dr, const char *row, int len)
{
    return row && len >= 0 ? to_old_result(object_response.http_header_n(dr, row, len)) : -1;
}

static int set_content_type(duda_request_t *dr, const char *extension)
{
    return extension ? to_old_result(object_response.http_content_type(dr, extension)) : -1;
}

static int set_content_length(duda_request_t *dr, long length)
{
    return to_old_result(object_response.http_content_length(dr, length));
}

static int omit_headers(duda_request_t *dr)
{
    int err = object_response.headers_off(dr);
    if (err == 0)
        dr->old_has_status = true;
    return to_old_result(err);
}

/* A service of the original that did not set a status ended the server. */
static void require_status(duda_request_t *dr)
{
    if (!object_request.validate_request(dr) || dr->old_has_status)
        return;
    dr->old_has_status = true;
    if (object_response.http_status(dr, 500) == 0)
        message_log_of(dr->worker->service, MK_LOG_ERROR,
                       "the response has no status: response->http_status() was not called");
}

static int send_headers(duda_request_t *dr)
{
    require_status(dr);
    return to_old_result(object_response.send_headers(dr));
}

/* ── the body ── */

/*
 * The original did not copy, but response->end() wrote to the socket before it returned: buffers of the function, and
 * those that are freed after it, were sent if the socket had room for them.
 */
static int add_bytes(duda_request_t *dr, const char *data, int len)
{
    if (len < 0 || (!data && len > 0))
        return -1;
    return to_old_result(len <= COPIED_BYTES_MAX ? object_response.write(dr, data, (size_t)len)
                                                 : object_response.print_ref(dr, data, (size_t)len));
}

static int add_formatted(duda_request_t *dr, const char *format, ...)
{
    size_t len;
    va_list args;
    va_start(args, format);
    char *text = old_format(format, args, &len);
    va_end(args);
    int err = text ? object_response.write(dr, text, len) : output_miss(dr);
    object_mem.free(text);
    return to_old_result(err);
}

static int add_file(duda_request_t *dr, const char *path)
{
    return path ? to_old_result(object_response.sendfile(dr, path)) : -1;
}

static int add_file_range(duda_request_t *dr, const char *path, off_t offset, size_t count)
{
    return path && offset >= 0 ? to_old_result(object_response.sendfile_range(dr, path, offset, count)) : -1;
}

/* ── the end ── */

static int wait_response(duda_request_t *dr)
{
    return to_old_result(object_response.wait(dr));
}

static int continue_response(duda_request_t *dr)
{
    return to_old_result(object_response.cont(dr));
}

/* The length that a service has set is what its clients read: the body is cut to it. */
static void truncate_body(duda_request_t *dr)
{
    const struct output *o = &dr->output;
    if (!o->is_fixed || o->length < 0 || o->state != OUTPUT_HELD || (uint64_t)o->length >= o->bytes)
        return;
    api_error_log(dr->worker, "response->http_content_length()", "the body is longer, and is cut to this length");
    output_truncate(dr, (uint64_t)o->length);
}

static int finalize_response(duda_request_t *dr, duda_request_fn done)
{
    require_status(dr);
    if (object_request.validate_request(dr))
        truncate_body(dr);
    return to_old_result(object_response.finalize(dr, done));
}

static int flush_response(duda_request_t *dr)
{
    require_status(dr);
    return to_old_result(object_response.flush(dr));
}

const struct duda_old_response old_response = {
    .http_status = set_status,
    .http_header = add_header,
    .http_header_n = add_header_n,
    .http_content_type = set_content_type,
    .http_content_length = set_content_length,
    .headers_off = omit_headers,
    .send_headers = send_headers,
    .print = add_bytes,
    .printf = add_formatted,
    .sendfile = add_file,
    .sendfile_range = add_file_range,
    .wait = wait_response,
    .cont = continue_response,
    .finalize = finalize_response,
    .flush = flush_response,
    .body_print = add_bytes,
    .body_printf = add_formatted,
    .body_write = add_bytes,
};
