// SPDX-License-Identifier: Apache-2.0
/*
 * A job for a request, which may end while the job runs: for plugins that open or look for files. The job holds the
 * worker of the request, so that hosts and the configuration stay as they are until it is done.
 *
 *     struct lookup { struct mk_request_job base; ... };
 *     static const struct mk_request_job_type type = {sizeof(struct lookup), look, respond};
 *
 *     struct lookup *l = mk_request_job_new(req, &type, path);
 *     l->...
 *     mk_request_job_start(&l->base) ─► work() on a disk thread ─► done() in the worker
 *
 * In the kit: plugins link -lmonkey-kit.
 */
#ifndef MONKEY_REQUEST_JOB_H
#define MONKEY_REQUEST_JOB_H

#include "../loop.h"
#include "../plugin.h"

MK_C_BEGIN

struct mk_request_job;

struct mk_request_job_type {
    size_t bytes; /* of the struct that begins with a struct mk_request_job */
    /* On a disk thread. The request must not be used, nor what is in its arena. */
    void (*work)(struct mk_request_job *job);
    /* In the worker; the job is freed after it. `req` is NULL if it has ended: then release what work() has opened. */
    void (*done)(struct mk_request_job *job, struct mk_request *req);
};

struct mk_request_job {
    struct mk_str text; /* a copy, with a NUL after it; valid until done() has returned */
    /* The others are the library's. */
    const struct mk_request_job_type *type;
    struct mk_job job;
    struct mk_request_job **owner; /* in the arena of the request */
    struct mk_request *req;        /* NULL: it has ended */
    struct mk_worker *worker;
    struct mk_account *account;
};

/*
 * Makes a job that was not started yet, with a copy of `text`; the members of the caller are zeros. Returns NULL
 * without memory.
 */
MK_API void *mk_request_job_new(struct mk_request *req, const struct mk_request_job_type *type, struct mk_str text);
/*
 * Starts a job. Returns 0 (done() is called later in any case), -ENOMEM or -EAGAIN (the server ends): the job is freed
 * then, without a call.
 */
MK_API int mk_request_job_start(struct mk_request_job *job);

MK_C_END

#endif
