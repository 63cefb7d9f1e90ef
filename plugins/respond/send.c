// SPDX-License-Identifier: Apache-2.0
/*
 * Sends the answer of a section. A file is opened for each request, so that it may be replaced at any time.
 */
#include "respond.h"

#include <monkey/base/file.h>
#include <monkey/kit/open_file.h>
#include <monkey/kit/request_job.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <unistd.h>

/* Adds all headers but Content-Type, which is that of the body. Returns 0 or -errno. */
static int add_headers(struct mk_request *req, const struct respond_rule *r)
{
    int err = 0;
    for (uint32_t i = 0; i < r->headers.n && err == 0; i++)
        if (!respond_is_type(r->headers.items[i].name))
            err = mk_response_header_ref(req, r->headers.items[i].name, r->headers.items[i].value);
    return err;
}

/* ── texts and pages ── */

static void send_text(struct mk_request *req, const struct respond_rule *r)
{
    struct mk_str type = r->headers.type.p ? r->headers.type : MK_STR("text/plain; charset=utf-8");
    mk_response_set_status(req, (int)r->status);
    int err = add_headers(req, r);
    if (err == 0 && r->text.p)
        err = mk_response_header_ref(req, MK_STR("Content-Type"), type);
    if (err == 0 && r->text.len)
        err = mk_response_write_ref(req, r->text);
    if (err < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static void send_error_page(struct mk_request *req, const struct respond_rule *r)
{
    mk_response_error(req, (int)r->status);
    add_headers(req, r);
}

/* ── files ── */

/* O_NONBLOCK: do not wait for a FIFO or device. O_NOCTTY: do not get a controlling terminal. */
int respond_open_file(const char *path, uint64_t resolve)
{
    return mk_file_openat2(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, resolve);
}

/* Conditions and ranges are about a response that would be 200 (RFC 9110 sections 13.2.1 and 14.2). */
static void send_whole_file(struct mk_request *req, const struct mk_file *file, int status)
{
    mk_response_set_status(req, status);
    int err = mk_response_header_ref(req, MK_STR("Content-Type"), file->type);
    if (mk_response_write_file(req, file->fd, 0, file->bytes) < 0 || err < 0)
        mk_response_error(req, 503);
    else
        mk_response_end(req);
}

static void refuse_file(struct mk_request *req, const struct respond_rule *r, int err)
{
    respond_count(req, RESPOND_FAILED_FILE);
    mk_request_log(req, MK_LOG_ERROR, "respond: cannot send the file %s: %s", r->file.p,
                   err == -ENOEXEC ? "it is a program of another plugin, and never sent" : strerror(-err));
    mk_response_error(req, err == -ENOEXEC ? 404 : mk_open_file_get_status(err));
}

/* Sends an open file. `fd` < 0: -errno, it could not be opened. */
static void send_file(struct mk_request *req, const struct respond_rule *r, int fd)
{
    struct mk_file file;
    int err = fd < 0 ? fd : mk_open_file_describe(fd, &file);
    if (err == 0 && mk_host_is_source_fd(mk_request_host_conf(req), fd))
        err = -ENOEXEC;
    if (err == 0)
        err = add_headers(req, r);
    if (err < 0) {
        if (fd >= 0)
            close(fd);
        refuse_file(req, r, err);
        return;
    }
    file.type = r->headers.type.p ? r->headers.type : mk_request_mime(req, r->file);
    if (r->status == 200)
        mk_response_file(req, &file);
    else
        send_whole_file(req, &file, (int)r->status);
}

struct open_job {
    struct mk_request_job base; /* with the path */
    const struct respond_rule *rule;
    int fd;
};

static void run_job(struct mk_request_job *job)
{
    struct open_job *j = (struct open_job *)job;
    j->fd = respond_open_file(job->text.p, 0);
}

static void end_job(struct mk_request_job *job, struct mk_request *req)
{
    const struct open_job *j = (const struct open_job *)job;
    if (req)
        send_file(req, j->rule, j->fd);
    else if (j->fd >= 0)
        close(j->fd);
}

/* Opens the file, on a disk thread if its name is not in the kernel's cache, and sends it. */
static void open_and_send_file(struct mk_request *req, const struct respond_rule *r)
{
    static const struct mk_request_job_type type = {sizeof(struct open_job), run_job, end_job};
    int fd = respond_open_file(r->file.p, RESOLVE_CACHED);
    struct open_job *j = fd == -EAGAIN ? mk_request_job_new(req, &type, r->file) : NULL;
    if (j) {
        j->rule = r;
        fd = mk_request_job_start(&j->base);
    }
    if (!j || fd < 0) /* there is no job: its -EAGAIN, or that of the file, becomes 503 */
        send_file(req, r, fd);
}

void respond_send(struct mk_request *req, const struct respond_rule *r)
{
    respond_count(req, RESPOND_RESPONSES);
    if (r->file.p)
        open_and_send_file(req, r);
    else if (r->status >= 400 && !r->text.p)
        send_error_page(req, r);
    else
        send_text(req, r);
}
