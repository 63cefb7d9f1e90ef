// SPDX-License-Identifier: Apache-2.0
/*
 * Starts the process of a run: pipes, variables, arguments.
 */
#include "cgi.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ── its end ── */

static void on_ended(struct mk_child *child, int status)
{
    struct run *r = MK_CONTAINER_OF(child, struct run, child);
    r->has_ended = true;
    r->status = status;
    run_output_note_end(r);
}

/* Returns the status for a script that was not started. */
static int get_status(int err)
{
    static const struct {
        int err, status;
    } rows[] = {{EAGAIN, 503}, {EBUSY, 503}, {ENOBUFS, 503}, {ENOMEM, 503}, {EMFILE, 503},
                {ENFILE, 503}, {EPIPE, 503}, {E2BIG, 431},   {EACCES, 403}, {ETIMEDOUT, 504}};
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (rows[i].err == -err)
            return rows[i].status;
    return 500;
}

static const char *find_advice(int err, enum mk_child_step step)
{
    if (step == MK_CHILD_EXEC && err == -ENOENT)
        return " (the program that its first line names?)";
    if (step == MK_CHILD_STARTER && err == -EBUSY)
        return ": too many scripts of all sections run: lower MaxProcesses";
    return "";
}

static void report_failure(struct run *r, int err, enum mk_child_step step)
{
    if (r->req)
        mk_request_log(r->req, MK_LOG_ERROR, "%s: it %s: %s%s", r->prefix, mk_child_step_text(step), strerror(-err),
                       find_advice(err, step));
    run_fail(r, get_status(err));
}

static void on_started(struct mk_child *child, int err, enum mk_child_step step)
{
    struct run *r = MK_CONTAINER_OF(child, struct run, child);
    if (err < 0) {
        r->has_child = false;
        report_failure(r, err, step);
        return;
    }
    counters_add(r->worker, COUNT_STARTS, 1);
    if (!r->req)
        return; /* it is being ended */
    r->phase = HEAD;
    err = run_output_begin(r);
    if (err < 0) {
        report_failure(r, err, MK_CHILD_FORK);
        return;
    }
    run_input_begin(r);
    if (r->req)
        run_touch(r);
}

static const struct mk_child_events events = {on_started, on_ended};

/* ── what it gets ── */

static int add_variable(struct mk_str name, struct mk_str value, void *ctx)
{
    struct mk_buf *out = ctx;
    if (value.len && memchr(value.p, '\0', value.len))
        return 0; /* a variable cannot have it */
    mk_buf_adds(out, name);
    mk_buf_addc(out, '=');
    mk_buf_adds(out, value);
    mk_buf_addc(out, '\0');
    return out->err == -ENOBUFS ? -E2BIG : out->err;
}

/* The script alone, or after its interpreter; never the query (RFC 3875 section 4.4 is left out). */
static void write_args(const struct run *r, struct mk_buf *out)
{
    const struct cgi_interpreter *i = cgi_conf_find_interpreter(r->conf, r->params.script_filename);
    if (i)
        mk_buf_adds(out, i->args);
    mk_buf_adds(out, r->params.script_filename);
    mk_buf_addc(out, '\0');
}

/* Writes the folder of the script. */
static void write_folder(const struct run *r, struct mk_buf *out)
{
    struct mk_str file = r->params.script_filename;
    const char *slash = memrchr(file.p, '/', file.len);
    mk_buf_add(out, file.p, slash && slash > file.p ? (size_t)(slash - file.p) : 1);
}

static int start_child(struct run *r, struct mk_child_options *o)
{
    struct mk_buf args, env, folder;
    const struct cgi_interpreter *i = cgi_conf_find_interpreter(r->conf, r->params.script_filename);
    mk_buf_init(&args, MK_CHILD_BYTES_MAX);
    mk_buf_init(&env, MK_CHILD_BYTES_MAX);
    mk_buf_init(&folder, MK_CGI_PATH_BYTES);
    write_args(r, &args);
    write_folder(r, &folder);
    int err = mk_cgi_write_variables(r->req, &r->params, add_variable, &env);
    o->path = i ? i->path.p : r->params.script_filename.p;
    o->folder = mk_buf_cstr(&folder);
    o->args = mk_buf_str(&args);
    o->env = mk_buf_str(&env);
    o->limits = r->conf->limits;
    if (err == 0 && (args.err || folder.err))
        err = -ENOMEM;
    if (err == 0) {
        err = mk_child_start(&r->child, r->thread->channel, r->worker, &events, o);
        o->fds[0] = o->fds[1] = o->fds[2] = -1;
    }
    mk_buf_release(&args);
    mk_buf_release(&env);
    mk_buf_release(&folder);
    return err;
}

/* ── pipes ── */

static void close_fds(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* Makes a pipe whose end `own` (0: to read, 1: to write) is the server's and does not block. Returns 0 or -errno. */
static int open_pipe(struct run *r, int own, struct mk_event *event, int *ret_theirs)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        int err = -errno;
        mk_worker_note_descriptor(r->worker, err == -EMFILE || err == -ENFILE ? -1 : 0);
        return err;
    }
    mk_worker_note_descriptor(r->worker, fds[1]);
    if (fcntl(fds[own], F_SETFL, O_NONBLOCK) < 0) {
        int err = -errno;
        close_fds(fds, 2);
        return err;
    }
    event->fd = fds[own];
    *ret_theirs = fds[1 - own];
    return 0;
}

void run_start(struct run *r)
{
    struct mk_child_options options = {.fds = {-1, -1, -1}};
    mk_timer_cancel(&r->timer);
    r->phase = STARTING;
    r->has_ended = false;
    int err = r->thread->channel ? 0
                                 : mk_child_channel_open(r->thread->process->starter, r->thread->base.loop,
                                                         r->thread->account, &r->thread->channel);
    if (err == 0 && r->has_body && !r->params.is_redirected)
        err = open_pipe(r, 1, &r->in, &options.fds[0]);
    if (err == 0)
        err = open_pipe(r, 0, &r->out, &options.fds[1]);
    if (err == 0)
        err = open_pipe(r, 0, &r->err, &options.fds[2]);
    if (err == 0)
        err = start_child(r, &options);
    close_fds(options.fds, 3);
    if (err < 0)
        report_failure(r, err, MK_CHILD_FORK);
    else
        r->has_child = true;
    if (err == 0)
        mk_request_wait(r->req, MK_CHILD_START_MS + r->conf->timeout_ms);
}
