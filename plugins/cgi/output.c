// SPDX-License-Identifier: Apache-2.0
/*
 * What the script writes: the head of its response, the body, and error output for the log.
 *
 *     pipe ─► head ─► parser ─► the client's head
 *     pipe ─► spool ─► generator ─► the client's body      the pipe is not read while the spool is full
 *
 * The end of the output is not the end of the response: if the script was killed, the client must see that the body is
 * incomplete. So its status is waited for, but not for long: a script may close its output and continue.
 */
#include "cgi.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { STATUS_MS = 100, READS_AT_ONCE = 4, HEAD_READ_BYTES = 16384, REASON_BYTES = 512 };

static void on_output(struct mk_event *event, uint32_t events);

/* ── error output ── */

static void close_errors(struct run *r)
{
    run_close_fd(r, &r->err, &r->err_is_watched);
    mk_cgi_stderr_end(&r->errors);
}

/* Returns false if there is no more now. */
static bool read_errors(struct run *r)
{
    ssize_t n = r->err.fd < 0 ? 0 : read(r->err.fd, r->thread->buffer, sizeof(r->thread->buffer));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_errors(r);
        return false;
    }
    mk_cgi_stderr_add(&r->errors, mk_str(r->thread->buffer, (size_t)n));
    return true;
}

static void on_errors(struct mk_event *event, uint32_t events)
{
    struct run *r = MK_CONTAINER_OF(event, struct run, err);
    (void)events;
    read_errors(r);
}

/* ── the end ── */

/* Closes the process once it has ended and its output, too. Returns true if a redirect was followed then. */
static bool try_close_child(struct run *r)
{
    if (!r->has_child || !r->has_ended || (r->out.fd >= 0 && !r->is_stopped))
        return false;
    for (int i = 0; i < READS_AT_ONCE && read_errors(r); i++)
        ;
    if (r->err.fd >= 0)
        close_errors(r); /* what it has left behind may have it */
    run_close_child(r);
    mk_timer_cancel(&r->timer);
    if (!r->req || !r->next)
        return false;
    run_redirect_continue(r);
    return true;
}

static void report_no_head(struct run *r)
{
    MK_BUF_ON_STACK(how, 96);
    mk_child_print_status(r->has_ended ? r->status : -1, &how);
    mk_request_log(r->req, MK_LOG_ERROR, "%s: its output has ended before the head of a response was complete; it %s",
                   r->prefix, r->has_ended ? mk_buf_cstr(&how) : "still runs");
    run_fail(r, 502);
}

static void report_kill(struct run *r)
{
    MK_BUF_ON_STACK(how, 96);
    mk_child_print_status(r->status, &how);
    mk_request_log(r->req, MK_LOG_ERROR, "%s: it %s: its response is cut", r->prefix, mk_buf_cstr(&how));
    run_fail(r, 502);
}

static void report_shortage(struct run *r)
{
    mk_request_log(r->req, MK_LOG_ERROR,
                   "%s: its output has ended before the bytes of its Content-Length: its response is cut", r->prefix);
    counters_add(r->worker, COUNT_FAILURES, 1);
    r->is_truncated = true;
    mk_response_wake(r->req);
}

/* Ends the body after what is kept. */
static void complete_body(struct run *r)
{
    r->has_all = true;
    if (mk_spool_end(r->kept.spool) < 0)
        r->is_truncated = true;
    mk_response_wake(r->req);
}

void run_output_finish(struct run *r)
{
    r->awaits_status = false;
    if (r->req && r->phase == HEAD) {
        report_no_head(r);
    } else if (r->req && r->phase == BODY && r->kept.spool && !r->has_all) {
        if (r->has_ended && (r->status < 0 || (r->status & 0x7f) != 0))
            report_kill(r);
        else if (r->parser.has_length)
            report_shortage(r);
        else
            complete_body(r);
    }
    if (r->has_child)
        run_touch(r);
}

/* The script has closed its output. */
static void end_output(struct run *r)
{
    run_close_fd(r, &r->out, &r->out_is_watched);
    r->out_ended = true;
    if (try_close_child(r))
        return;
    if (r->has_ended || !r->req || r->phase == OVER || r->has_all) { /* how it ends changes nothing */
        run_output_finish(r);
        return;
    }
    r->awaits_status = true;
    mk_timer_arm(r->loop, &r->timer, STATUS_MS);
}

void run_output_note_end(struct run *r)
{
    bool awaits = r->awaits_status;
    if (!try_close_child(r) && awaits)
        run_output_finish(r);
    run_release(r);
}

void run_output_release(struct run *r)
{
    run_close_fd(r, &r->out, &r->out_is_watched);
    if (r->err.fd >= 0)
        close_errors(r);
}

/* ── the body ── */

static void fail_kept(struct run *r, int err)
{
    mk_request_log(r->req, MK_LOG_ERROR, "%s: its response cannot be kept: %s", r->prefix, strerror(-err));
    run_fail(r, 503);
}

static void on_spool(struct mk_spool *spool, unsigned what, void *ctx)
{
    struct run *r = ctx;
    (void)spool;
    if (!r->req || !r->kept.spool)
        return;
    if (what & MK_SPOOL_READABLE)
        mk_response_wake(r->req);
    if (what & MK_SPOOL_WRITABLE && r->phase == BODY && r->out.fd >= 0) {
        if (run_watch(r, &r->out, &r->out_is_watched, EPOLLIN) < 0)
            run_fail(r, 503);
        else
            run_touch(r);
    }
}

/* Gives the client what is kept. */
static ssize_t generate_body(struct mk_request *req, char *to, size_t size, void *ctx)
{
    struct run *r = ctx;
    (void)req;
    if (!r->kept.spool)
        return -EIO;
    if (r->is_truncated && !mk_spool_left(r->kept.spool))
        return -EIO;
    ssize_t n = mk_spool_read(r->kept.spool, to, size);
    r->is_complete |= n == 0;
    return n;
}

static void report_excess(struct run *r)
{
    if (!r->has_excess)
        mk_request_log(r->req, MK_LOG_WARN,
                       "%s: it has written more than the %" PRIu64 " bytes of its Content-Length: the rest is dropped",
                       r->prefix, r->parser.length);
    r->has_excess = true;
}

/* Returns what of the bytes still belongs to the body. */
static struct mk_str truncate_to_length(struct run *r, struct mk_str bytes)
{
    uint64_t left = r->parser.length - r->kept_bytes;
    if (!r->parser.has_length || bytes.len <= left)
        return bytes;
    report_excess(r);
    return mk_str(bytes.p, (size_t)left);
}

/* Keeps bytes for the client; the pipe is not read while there is no room. Returns false if none is to be read now. */
static bool keep_output(struct run *r, struct mk_str bytes)
{
    if (!r->kept.spool || r->phase != BODY)
        return true; /* they are dropped */
    bytes = truncate_to_length(r, bytes);
    int err = bytes.len ? mk_spool_write(r->kept.spool, bytes) : 0;
    if (err < 0) {
        fail_kept(r, err);
        return false;
    }
    r->kept_bytes += bytes.len;
    if (r->parser.has_length && r->kept_bytes == r->parser.length && !r->has_all) {
        complete_body(r);
        return true;
    }
    mk_response_wake(r->req);
    if (err == MK_AGAIN)
        run_watch(r, &r->out, &r->out_is_watched, 0);
    return err == 0;
}

/* Begins the body with what has come after the head. */
static void begin_body(struct run *r, struct mk_str rest)
{
    const struct mk_gateway_buffer *buffer = &r->conf->buffer;
    const struct mk_gateway_buffer sizes = {.memory_bytes = buffer->memory_bytes > MK_SPOOL_MEMORY_MIN
                                                                ? buffer->memory_bytes
                                                                : MK_SPOOL_MEMORY_MIN,
                                            .file_bytes = buffer->memory_bytes ? buffer->file_bytes : 0};
    int status = mk_response_get_status(r->req);
    bool is_head = mk_request_method(r->req) == MK_HEAD;
    if (is_head || status == 204 || status == 304) {
        if (is_head && !r->parser.has_length) /* is not called, and so nothing is said of a length */
            mk_response_generate(r->req, generate_body, r);
        r->is_complete = true;
        r->phase = OVER;
        mk_response_end(r->req);
        return;
    }
    int err = run_open_spool(r, &r->kept, &sizes, false, on_spool);
    if (err == 0)
        err = mk_response_generate(r->req, generate_body, r);
    if (err < 0) {
        fail_kept(r, err);
        return;
    }
    r->phase = BODY;
    mk_response_end(r->req);
    keep_output(r, rest); /* which may be all, if the length is 0 */
}

/* ── the head ── */

static void take_head(struct run *r)
{
    struct mk_str head = mk_buf_str(&r->head);
    struct mk_str target = r->conf->local_redirect ? mk_cgi_find_local_redirect(&r->parser, head) : MK_STR_NONE;
    if (target.p) {
        run_redirect(r, target);
        return;
    }
    int err = mk_cgi_pass_head(r->req, &r->parser, r->fields, head);
    if (err < 0) {
        mk_request_log(r->req, MK_LOG_ERROR, "%s: the head of its response cannot be passed on: %s", r->prefix,
                       strerror(-err));
        run_fail(r, err == -ENOMEM ? 503 : 502);
        return;
    }
    begin_body(r, mk_str(head.p + r->parser.head_bytes, head.len - r->parser.head_bytes));
    mk_buf_release(&r->head);
}

static void log_head_error(struct run *r, int err)
{
    MK_BUF_ON_STACK(reason, REASON_BYTES);
    if (err == -EINVAL)
        mk_response_fault_describe(&r->parser.fault, r->head.data, &reason);
    mk_request_log(r->req, MK_LOG_ERROR, "%s: %s%s", r->prefix,
                   err == -ENOMEM     ? "there is no memory for its response"
                   : err == -EMSGSIZE ? "the head of its response is longer than MaxResponseHead, has too many header "
                                        "fields, or has no empty line behind them"
                                      : "its response is malformed: ",
                   mk_buf_cstr(&reason));
}

static void parse_head(struct run *r)
{
    int err = r->head.err ? -ENOMEM : mk_cgi_head_parse(&r->parser, r->fields, mk_buf_str(&r->head));
    if (err == 0) {
        take_head(r);
    } else if (err < 0) {
        log_head_error(r, err);
        run_fail(r, err == -ENOMEM ? 503 : 502);
    }
}

/* ── reading ── */

/* Reads once. Returns false if no more is to be read now. */
static bool read_output(struct run *r)
{
    size_t size = r->phase == HEAD ? HEAD_READ_BYTES : sizeof(r->thread->buffer);
    ssize_t n = read(r->out.fd, r->thread->buffer, size);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        end_output(r);
        return false;
    }
    struct mk_str bytes = mk_str(r->thread->buffer, (size_t)n);
    if (r->phase == HEAD) {
        mk_buf_adds(&r->head, bytes);
        parse_head(r);
        return r->out.fd >= 0 && r->out_is_watched;
    }
    return keep_output(r, bytes) && r->out.fd >= 0;
}

static void on_output(struct mk_event *event, uint32_t events)
{
    struct run *r = MK_CONTAINER_OF(event, struct run, out);
    (void)events;
    for (int i = 0; i < READS_AT_ONCE && read_output(r); i++)
        ;
    if (!r->out_ended)
        run_touch(r);
    run_release(r);
}

int run_output_begin(struct run *r)
{
    r->out.ready = on_output;
    r->err.ready = on_errors;
    r->out_ended = false;
    if (!r->fields)
        r->fields = mk_arena_alloc(mk_request_arena(r->req), CGI_FIELDS_MAX * sizeof(*r->fields));
    if (!r->fields)
        return -ENOMEM;
    mk_buf_release(&r->head);
    mk_buf_init(&r->head, r->conf->head_bytes_max + HEAD_READ_BYTES);
    mk_cgi_head_init(&r->parser, &r->conf->head_limits);
    int err = run_watch(r, &r->out, &r->out_is_watched, EPOLLIN);
    return err == 0 ? run_watch(r, &r->err, &r->err_is_watched, EPOLLIN) : err;
}
