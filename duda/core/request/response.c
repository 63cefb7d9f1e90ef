// SPDX-License-Identifier: Apache-2.0
/*
 * The object `response`: checks each call, and passes it on.
 */
#include "common/api_error.h"
#include "objects.h"
#include "request/header.h"
#include "request/output.h"
#include "request/raw_head.h"
#include "request/request.h"
#include "request/send_file.h"
#include "request/sse.h"
#include "request/ticket.h"

#include <monkey/base/escape.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES = 512, ESCAPED_BYTES = 8 };

/* A larger length is a negative number. */
static const size_t BYTES_MAX = SIZE_MAX / 2;

/* ── checks ── */

/* Returns whether the server has answered a response that the service has not begun: HandlerTimeout, a body ... */
static bool was_answered_by_server(duda_request_t *dr)
{
    if (dr->output.state != OUTPUT_HELD || !mk_response_head_sent(dr->req))
        return false;
    output_stop(dr);
    return true;
}

/* Logs a call for a request that is a tunnel. Returns -EALREADY. */
static int refuse_tunnel(duda_request_t *dr, const char *call)
{
    return request_refuse(dr, call, -EALREADY, "the request is a tunnel since tunnel->open()");
}

/* Logs a call after the end of the response. Returns -EALREADY. */
static int refuse_ended(duda_request_t *dr, const char *call)
{
    return request_refuse(dr, call, -EALREADY,
                          dr->answered
                              ? "the response has ended already: end(), error() or redirect() comes once, and last"
                              : "the response was cut, or the server has sent its own: a timeout, a body too large");
}

/* Checks that a response can be changed, whose request was checked. Returns 0 or -EALREADY, which is logged. */
static int check_output(duda_request_t *dr, const char *call)
{
    if (MK_UNLIKELY(dr->tunnel))
        return refuse_tunnel(dr, call);
    if (MK_UNLIKELY(request_is_answered(dr) || was_answered_by_server(dr)))
        return refuse_ended(dr, call);
    return 0;
}

/* Checks that the response can be changed. Returns 0, -EALREADY or as request_check(); an error is logged. */
static int check_call(duda_request_t *dr, const char *call)
{
    int err = request_check(dr, call);
    return err == 0 ? check_output(dr, call) : err;
}

/* The same for calls that need the request longer than a page has it: -EPERM, too. */
static int check_lasting(duda_request_t *dr, const char *call)
{
    int err = request_check_lasting(dr, call);
    return err == 0 ? check_output(dr, call) : err;
}

/* Logs an error of a call whose arguments may be the reason. Returns it. */
static int report_error(duda_request_t *dr, const char *call, int err)
{
    return err < 0 && err != -ENOMEM ? api_error_report(dr->worker, call, err) : err;
}

/* Checks the same of the head: nothing was passed to the server, or it is about to be sent. */
static int check_held(duda_request_t *dr, const char *call)
{
    if (dr->is_before_head)
        return 0;
    int err = check_output(dr, call);
    if (err < 0 || dr->output.state == OUTPUT_HELD)
        return err;
    return request_refuse(dr, call, -EALREADY,
                          "the head was sent: status and headers come before flush(), send_headers() and sse_begin()");
}

/* Checks that the body has not begun. */
static int check_no_body(duda_request_t *dr, const char *call)
{
    if (!dr->raw && !dr->output.has_parts)
        return 0;
    return request_refuse(dr, call, -EALREADY, "the body has begun: call this before print(), printf() and others");
}

/* Checks that the head can be changed. */
static int check_head(duda_request_t *dr, const char *call)
{
    int err = request_check(dr, call);
    return err == 0 ? check_held(dr, call) : err;
}

/* The same for what would change the status, which a tunnel needs. */
static int check_status(duda_request_t *dr, const char *call)
{
    int err = check_head(dr, call);
    return err == 0 && dr->tunnel ? refuse_tunnel(dr, call) : err;
}

/* ── status and headers ── */

static int set_status(duda_request_t *dr, int status)
{
    static const char call[] = "response->http_status()";
    int err = check_status(dr, call);
    if (err < 0)
        return err;
    err = status > 599 ? -EINVAL : mk_response_set_status(dr->req, status);
    return err == -EINVAL ? request_refuse(dr, call, err, "the status must be 200 to 599")
                          : report_error(dr, call, err);
}

static int report_header(duda_request_t *dr, const char *call, int err)
{
    return err != -EINVAL ? report_error(dr, call, err)
                          : request_refuse(dr, call, err,
                                           "its name or value is wrong (a row is \"Name: value\", without control "
                                           "characters), or the server sets it itself");
}

static int add_row(duda_request_t *dr, struct mk_str row)
{
    static const char call[] = "response->http_header()";
    int err = check_head(dr, call);
    return err == 0 ? report_header(dr, call, row.p ? header_add_row(dr, row) : -EINVAL) : err;
}

static int add_header_row(duda_request_t *dr, const char *row)
{
    return add_row(dr, mk_str_c(row));
}

static int add_header_row_n(duda_request_t *dr, const char *row, int len)
{
    return add_row(dr, row && len >= 0 ? mk_str(row, (size_t)len) : MK_STR_NONE);
}

/* Returns formatted text in `buf` (TEXT_BYTES) or, if it is longer, in the heap; `.p` NULL without memory. */
static struct mk_str format_text(struct mk_account *account, char *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(buf, TEXT_BYTES, format, args);
    char *text = buf;
    if (n >= TEXT_BYTES) {
        text = mk_account_alloc(account, (size_t)n + 1);
        if (text)
            vsnprintf(text, (size_t)n + 1, format, again);
    }
    va_end(again);
    return n < 0 || !text ? MK_STR_NONE : mk_str(text, (size_t)n);
}

static void free_text(struct mk_account *account, const char *buf, struct mk_str text)
{
    if (text.p && text.p != buf)
        mk_account_free(account, (void *)(uintptr_t)text.p, text.len + 1);
}

static int add_header(duda_request_t *dr, const char *name, const char *format, ...)
{
    char buf[TEXT_BYTES];
    va_list args;
    int err = check_head(dr, "response->header()");
    if (err == 0 && (!name || !format))
        err = report_header(dr, "response->header()", -EINVAL);
    if (err < 0)
        return err;
    va_start(args, format);
    struct mk_str value = format_text(mk_request_account(dr->req), buf, format, args);
    va_end(args);
    struct mk_str own_name = mk_arena_dup(mk_request_arena(dr->req), mk_str_c(name));
    err = value.p && own_name.p ? header_add(dr, own_name, value) : -ENOMEM;
    free_text(mk_request_account(dr->req), buf, value);
    return report_header(dr, "response->header()", err);
}

static int remove_header(duda_request_t *dr, const char *name)
{
    int err = check_head(dr, "response->header_remove()");
    if (err == 0)
        mk_response_header_remove(dr->req, mk_str_c(name));
    return err;
}

REQUEST_CALL(int set_content_type(duda_request_t *dr, const char *extension), check_head,
             "response->http_content_type()", err, header_set_type(dr, mk_str_c(extension)))

static int set_content_length(duda_request_t *dr, int64_t bytes)
{
    int err = check_head(dr, "response->http_content_length()");
    if (err == 0 && bytes < OUTPUT_LENGTH_OMITTED)
        err = report_error(dr, "response->http_content_length()", -EINVAL);
    if (err < 0)
        return err;
    dr->output.length = bytes;
    dr->output.is_fixed = true;
    return 0;
}

static int set_headers_off(duda_request_t *dr)
{
    int err = check_status(dr, "response->headers_off()");
    if (err == 0)
        err = check_no_body(dr, "response->headers_off()");
    return err == 0 ? raw_head_begin(dr) : err;
}

static int send_headers(duda_request_t *dr)
{
    int err = check_head(dr, "response->send_headers()");
    if (err == 0)
        err = check_no_body(dr, "response->send_headers()");
    if (err == 0)
        err = output_flush(dr);
    return err < 0 ? err : 0;
}

/* ── body ── */

/* Ends a response with 500 because of a head that the service has printed, which is wrong or incomplete. */
static int reject_raw_head(duda_request_t *dr, const char *call, int err)
{
    api_error_log(dr->worker, call,
                  "after headers_off() the service must print a status line and headers: sending 500");
    raw_head_free(dr);
    output_send_page(dr, 500);
    return err;
}

/* Checks that a part can be added that is not text. */
static int check_part(duda_request_t *dr, const char *call)
{
    int err = check_call(dr, call);
    return err == 0 && dr->raw ? reject_raw_head(dr, call, -EINVAL) : err;
}

/* Adds bytes, which are copied, part of which may belong to a head that the service prints. */
static int add_raw(duda_request_t *dr, const char *call, struct mk_str data)
{
    struct mk_str rest;
    int err = raw_head_add(dr, data, &rest);
    return err < 0 ? reject_raw_head(dr, call, err) : output_add_copy(dr, rest);
}

static int add_copy(duda_request_t *dr, const char *call, struct mk_str data)
{
    return dr->raw ? add_raw(dr, call, data) : output_add_copy(dr, data);
}

static int check_bytes(duda_request_t *dr, const char *call, const void *data, size_t len)
{
    int err = check_call(dr, call);
    bool is_wrong = len > BYTES_MAX || (len && !data);
    return err == 0 && is_wrong ? request_refuse(dr, call, -EINVAL, "the text is NULL, or its length is negative")
                                : err;
}

static int print_bytes(duda_request_t *dr, const char *data, int len)
{
    static const char call[] = "response->print()";
    int err = check_bytes(dr, call, data, (size_t)len);
    return err == 0 ? add_copy(dr, call, mk_str(data, (size_t)len)) : err;
}

static int print_ref(duda_request_t *dr, const void *data, size_t len)
{
    static const char call[] = "response->print_ref()";
    int err = check_bytes(dr, call, data, len);
    if (err < 0)
        return err;
    return dr->raw ? add_raw(dr, call, mk_str(data, len)) : output_add_ref(dr, mk_str(data, len));
}

static int write_bytes(duda_request_t *dr, const void *data, size_t len)
{
    static const char call[] = "response->write()";
    int err = check_bytes(dr, call, data, len);
    return err == 0 ? add_copy(dr, call, mk_str(data, len)) : err;
}

/* Each byte takes ESCAPED_BYTES at most. Tabs and line ends stay. */
static void escape_html(struct mk_buf *out, struct mk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '\t' || text.p[i] == '\n' || text.p[i] == '\r')
            mk_buf_addc(out, text.p[i]);
        else
            mk_html_escape(out, mk_str(text.p + i, 1));
    }
}

static int print_html(duda_request_t *dr, const char *text)
{
    static const char call[] = "response->print_html()";
    MK_UNINITIALIZED char buf[TEXT_BYTES];
    struct mk_buf out;
    int r = check_bytes(dr, call, text, 1);
    struct mk_str rest = mk_str_c(text);
    while (r >= 0 && rest.len) {
        size_t n = rest.len < sizeof(buf) / ESCAPED_BYTES ? rest.len : sizeof(buf) / ESCAPED_BYTES;
        mk_buf_init_fixed(&out, buf, sizeof(buf));
        escape_html(&out, mk_str(rest.p, n));
        r = add_copy(dr, call, mk_buf_str(&out));
        rest = mk_str_after(rest, n);
    }
    return r;
}

static int print_formatted(duda_request_t *dr, const char *format, ...)
{
    MK_UNINITIALIZED char buf[TEXT_BYTES];
    va_list args;
    int r = check_call(dr, "response->printf()");
    if (r == 0 && !format)
        r = request_refuse(dr, "response->printf()", -EINVAL, "the format is NULL");
    if (r < 0)
        return r;
    struct mk_account *account = mk_request_account(dr->req);
    va_start(args, format);
    struct mk_str text = format_text(account, buf, format, args);
    va_end(args);
    r = text.p ? add_copy(dr, "response->printf()", text) : output_miss(dr);
    free_text(account, buf, text);
    return r;
}

/* Keeps the reason why a file was not added: a service may not look at the result. */
static void note_file(duda_request_t *dr, const char *path, int err)
{
    char text[TEXT_BYTES];
    const char *reason = err == -EINVAL ? "no regular file, or a relative path without DataDir" : strerror(-err);
    snprintf(text, sizeof(text), "%.256s: %s: the response is empty; check the result, and call error(dr, 404)", path,
             reason);
    dr->file_error = request_dup(dr, mk_str_c(text));
}

static void report_file(duda_request_t *dr)
{
    if (dr->file_error && !dr->output.has_parts && mk_response_get_status(dr->req) == 200)
        api_error_log(dr->worker, "response->sendfile()", dr->file_error);
}

static int send_file_range(duda_request_t *dr, const char *path, off_t offset, size_t len)
{
    int err = check_part(dr, "response->sendfile()");
    if (err == 0 && !path)
        err = report_error(dr, "response->sendfile()", -EINVAL);
    if (err < 0)
        return err;
    err = send_file_add(dr, path, offset, len);
    if (err < 0 && err != -ENOMEM)
        note_file(dr, path, err);
    return err;
}

static int send_file(duda_request_t *dr, const char *path)
{
    return send_file_range(dr, path, 0, 0);
}

static int generate_body(duda_request_t *dr, duda_generate_fn fn, void *data)
{
    int err = check_part(dr, "response->generate()");
    if (err == 0 && !fn)
        err = report_error(dr, "response->generate()", -EINVAL);
    return err == 0 ? output_add_generator(dr, fn, data) : err;
}

static int wake_generator(duda_request_t *dr)
{
    int err = request_check(dr, "response->wake()");
    if (err == 0 && dr->output.state != OUTPUT_HELD)
        mk_response_wake(dr->req);
    return err;
}

REQUEST_CALL(int flush_response(duda_request_t *dr), check_part, "response->flush()", err, output_flush(dr))

static int set_writable(duda_request_t *dr, duda_event_fn fn, void *data)
{
    int err = check_call(dr, "response->on_writable()");
    if (err == 0)
        dr->writable = (struct request_event){fn, data};
    return err;
}

/* ── the end ── */

static int keep_done(duda_request_t *dr, duda_request_fn fn)
{
    dr->done = fn;
    request_use(dr, FEATURE_CALLBACKS);
    return 0;
}

REQUEST_CALL(int set_done(duda_request_t *dr, duda_request_fn fn), request_check, "response->on_done()", err,
             keep_done(dr, fn))

static int end_response(duda_request_t *dr, duda_request_fn done)
{
    int err = check_part(dr, "response->end()");
    if (err < 0)
        return err;
    if (done)
        keep_done(dr, done);
    report_file(dr);
    dr->answered = true;
    return output_end(dr);
}

static int wait_response(duda_request_t *dr)
{
    int err = check_lasting(dr, "response->wait()");
    if (err < 0)
        return err;
    dr->is_kept = true;
    mk_request_pause(dr->req);
    return 0;
}

static int continue_response(duda_request_t *dr)
{
    int err = check_call(dr, "response->cont()");
    if (err == 0)
        mk_request_resume(dr->req);
    return err;
}

static bool is_redirect(int status)
{
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static int redirect_request(duda_request_t *dr, int status, const char *location)
{
    static const char call[] = "response->redirect()";
    struct header_list headers;
    int err = check_lasting(dr, call);
    if (err < 0)
        return err;
    if (!is_redirect(status))
        return request_refuse(dr, call, -EINVAL, "the status must be 301, 302, 303, 307 or 308");
    header_save(dr, &headers);
    if (!location || mk_response_header_ref(dr->req, MK_STR("Location"), mk_str_c(location)) == -EINVAL)
        return request_refuse(dr, call, -EINVAL, "the location is NULL, or has control characters");
    output_stop(dr);
    dr->answered = true;
    mk_response_redirect(dr->req, status, mk_str_c(location));
    header_restore(dr, &headers);
    return 0;
}

static int send_error(duda_request_t *dr, int status)
{
    int err = check_call(dr, "response->error()");
    if (err == 0 && (status < 200 || status > 599))
        err = report_error(dr, "response->error()", -EINVAL);
    if (err < 0)
        return err;
    struct header_list headers;
    if (dr->is_page) { /* whose headers are those of the response */
        output_send_page(dr, status);
        return 0;
    }
    header_save(dr, &headers);
    output_send_page(dr, status);
    header_restore(dr, &headers);
    return 0;
}

static int abort_response(duda_request_t *dr)
{
    int err = request_check(dr, "response->abort()");
    if (err == 0 && !(dr->tunnel && !dr->is_before_head))
        err = check_output(dr, "response->abort()");
    if (err < 0)
        return err;
    dr->leave.fn = NULL; /* the service itself has ended it */
    output_abort(dr);
    return 0;
}

/* ── server-sent events ── */

static int begin_events(duda_request_t *dr, unsigned heartbeat_s)
{
    int err = request_check_lasting(dr, "response->sse_begin()");
    if (err == 0)
        err = check_held(dr, "response->sse_begin()");
    if (err == 0)
        err = check_no_body(dr, "response->sse_begin()");
    return err == 0 ? report_error(dr, "response->sse_begin()", sse_begin(dr, heartbeat_s)) : err;
}

static int check_events(duda_request_t *dr, const char *call)
{
    int err = check_call(dr, call);
    if (err < 0 || dr->output.state == OUTPUT_SENDING)
        return err;
    return request_refuse(dr, call, -EINVAL, "response->sse_begin() must be called before");
}

static int send_event(duda_request_t *dr, const char *event, const char *id, const char *format, ...)
{
    MK_UNINITIALIZED char buf[TEXT_BYTES];
    va_list args;
    int r = check_events(dr, "response->sse_send()");
    if (r == 0 && !format)
        r = report_error(dr, "response->sse_send()", -EINVAL);
    if (r < 0)
        return r;
    struct mk_account *account = mk_request_account(dr->req);
    va_start(args, format);
    struct mk_str data = format_text(account, buf, format, args);
    va_end(args);
    r = data.p ? sse_send(dr, event, id, data) : -ENOMEM;
    free_text(account, buf, data);
    return report_error(dr, "response->sse_send()", r);
}

REQUEST_CALL(int set_retry(duda_request_t *dr, unsigned delay_ms), check_events, "response->sse_retry()", err,
             sse_set_retry(dr, delay_ms))

/* ── other threads ── */

static int make_ticket(duda_request_t *dr, struct duda_ticket *ret)
{
    int err = request_check_lasting(dr, "response->ticket()");
    if (err == 0 && !ret)
        err = report_error(dr, "response->ticket()", -EINVAL);
    if (err == 0)
        err = ticket_make(dr, ret);
    if (err == 0)
        dr->is_kept = true;
    return err;
}

const struct duda_api_response object_response = {
    .http_status = set_status,
    .print = print_bytes,
    .printf = print_formatted,
    .end = end_response,
    .http_header = add_header_row,
    .http_header_n = add_header_row_n,
    .header = add_header,
    .header_remove = remove_header,
    .http_content_type = set_content_type,
    .http_content_length = set_content_length,
    .headers_off = set_headers_off,
    .send_headers = send_headers,
    .write = write_bytes,
    .sendfile = send_file,
    .sendfile_range = send_file_range,
    .generate = generate_body,
    .wake = wake_generator,
    .flush = flush_response,
    .on_writable = set_writable,
    .finalize = end_response,
    .wait = wait_response,
    .cont = continue_response,
    .on_done = set_done,
    .redirect = redirect_request,
    .error = send_error,
    .abort = abort_response,
    .sse_begin = begin_events,
    .sse_send = send_event,
    .sse_retry = set_retry,
    .ticket = make_ticket,
    .print_ref = print_ref,
    .print_html = print_html,
    .deliver = ticket_deliver,
};
