// SPDX-License-Identifier: Apache-2.0
/*
 * A job for each path (lookup.h). The request may end meanwhile; the job holds its worker.
 */
#include "lookup.h"

#include <errno.h>

struct lookup {
    struct mk_job job;
    struct lookup **owner; /* in the arena of the request; NULL: that has ended */
    struct mk_request *req;
    struct mk_worker *worker;
    struct mk_account *account;
    const struct fastcgi_conf *conf;
    const struct mk_host *host;
    lookup_fn fn;
    struct resolution found;
    struct mk_str path;
    char bytes[];
};

static void free_lookup(struct lookup *l)
{
    mk_worker_put(l->worker);
    mk_account_free(l->account, l, sizeof(*l) + l->path.len + 1);
}

static void run_lookup(struct mk_job *job)
{
    struct lookup *l = MK_CONTAINER_OF(job, struct lookup, job);
    resolve_path(l->conf, l->host, l->path, &l->found);
}

static void end_lookup(struct mk_job *job)
{
    struct lookup *l = MK_CONTAINER_OF(job, struct lookup, job);
    if (l->owner) {
        *l->owner = NULL;
        l->fn(l->req, l->conf, &l->found);
    }
    free_lookup(l);
}

/* The request has ended. */
static void leave_lookup(void *arg)
{
    struct lookup **owner = arg;
    if (*owner)
        (*owner)->owner = NULL;
}

int lookup_start(struct mk_request *req, const struct fastcgi_conf *conf, lookup_fn fn)
{
    struct mk_str path = mk_request_path(req);
    struct lookup **owner = mk_arena_zalloc(mk_request_arena(req), sizeof(struct lookup *));
    if (!owner || mk_arena_defer(mk_request_arena(req), leave_lookup, owner) < 0)
        return -ENOMEM;
    struct lookup *l = mk_account_alloc(mk_request_account(req), sizeof(*l) + path.len + 1);
    if (!l)
        return -ENOMEM;
    *l = (struct lookup){.job = {.work = run_lookup, .done = end_lookup},
                         .owner = owner,
                         .req = req,
                         .worker = mk_worker_get(mk_request_worker(req)),
                         .account = mk_request_account(req),
                         .conf = conf,
                         .host = mk_request_host_conf(req),
                         .fn = fn,
                         .path = mk_str(l->bytes, path.len)};
    memcpy(l->bytes, path.p, path.len);
    l->bytes[path.len] = '\0';
    int err = mk_job_submit(mk_request_loop(req), &l->job);
    if (err < 0)
        free_lookup(l);
    else
        *owner = l;
    return err;
}
