// SPDX-License-Identifier: Apache-2.0
/*
 * Finds scripts on a disk thread (<monkey/cgi.h>). The request may end meanwhile; the job holds its worker.
 */
#include <monkey/cgi.h>

#include <errno.h>

struct lookup {
    struct mk_job job;
    struct lookup **owner; /* in the arena of the request; NULL: that has ended */
    struct mk_request *req;
    struct mk_worker *worker;
    struct mk_account *account;
    struct mk_cgi_place place;
    enum mk_cgi_find how;
    mk_cgi_found_fn fn;
    void *ctx;
    int err;
    struct mk_cgi_script script;
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
    l->err = mk_cgi_find_script(&l->place, l->how, l->path, &l->script);
}

static void end_lookup(struct mk_job *job)
{
    struct lookup *l = MK_CONTAINER_OF(job, struct lookup, job);
    if (l->owner) {
        *l->owner = NULL;
        l->fn(l->req, l->err, &l->script, l->ctx);
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

int mk_cgi_lookup(struct mk_request *req, const struct mk_cgi_place *place, enum mk_cgi_find how, struct mk_str path,
                  mk_cgi_found_fn fn, void *ctx)
{
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
                         .place = *place,
                         .how = how,
                         .fn = fn,
                         .ctx = ctx,
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
