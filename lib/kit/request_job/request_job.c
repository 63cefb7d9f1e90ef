// SPDX-License-Identifier: Apache-2.0
/*
 * Jobs for requests that may end meanwhile (<monkey/kit/request_job.h>). A pointer in the arena of the request leads to
 * the job; the end of the arena takes the request away from it.
 */
#include <monkey/kit/request_job.h>

#include <assert.h>

static struct mk_request_job *get_job(struct mk_job *job)
{
    return MK_CONTAINER_OF(job, struct mk_request_job, job);
}

static void free_job(struct mk_request_job *j)
{
    mk_worker_put(j->worker);
    mk_account_free(j->account, j, j->type->bytes + j->text.len + 1);
}

static void do_work(struct mk_job *job)
{
    struct mk_request_job *j = get_job(job);
    j->type->work(j);
}

static void end_job(struct mk_job *job)
{
    struct mk_request_job *j = get_job(job);
    if (j->req)
        *j->owner = NULL;
    j->type->done(j, j->req);
    free_job(j);
}

/* The request has ended. */
static void leave_job(void *arg)
{
    struct mk_request_job **owner = arg;
    if (*owner)
        (*owner)->req = NULL;
}

static struct mk_request_job **make_owner(struct mk_arena *arena)
{
    struct mk_request_job **owner = mk_arena_zalloc(arena, sizeof(struct mk_request_job *));
    return owner && mk_arena_defer(arena, leave_job, owner) == 0 ? owner : NULL;
}

void *mk_request_job_new(struct mk_request *req, const struct mk_request_job_type *type, struct mk_str text)
{
    assert(type->bytes >= sizeof(struct mk_request_job));
    struct mk_request_job **owner = make_owner(mk_request_arena(req));
    struct mk_account *account = mk_request_account(req);
    struct mk_request_job *j = owner ? mk_account_alloc(account, type->bytes + text.len + 1) : NULL;
    if (!j)
        return NULL;
    memset(j, 0, type->bytes);
    char *copy = (char *)j + type->bytes;
    if (text.len)
        memcpy(copy, text.p, text.len);
    copy[text.len] = '\0';
    j->text = mk_str(copy, text.len);
    j->type = type;
    j->job = (struct mk_job){.work = do_work, .done = end_job};
    j->owner = owner;
    j->req = req;
    j->worker = mk_worker_get(mk_request_worker(req));
    j->account = account;
    return j;
}

int mk_request_job_start(struct mk_request_job *job)
{
    int err = mk_job_submit(mk_request_loop(job->req), &job->job);
    if (err < 0)
        free_job(job);
    else
        *job->owner = job;
    return err;
}
