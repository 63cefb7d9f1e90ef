// SPDX-License-Identifier: Apache-2.0
/*
 * Finds scripts on a disk thread (<monkey/kit/cgi.h>).
 */
#include <monkey/kit/cgi.h>
#include <monkey/kit/request_job.h>

#include <errno.h>

struct lookup {
    struct mk_request_job base; /* with the path */
    struct mk_cgi_place place;
    enum mk_cgi_find how;
    mk_cgi_found_fn fn;
    void *ctx;
    int err;
    struct mk_cgi_script script;
};

static void run_lookup(struct mk_request_job *job)
{
    struct lookup *l = (struct lookup *)job;
    l->err = mk_cgi_find_script(&l->place, l->how, job->text, &l->script);
}

static void end_lookup(struct mk_request_job *job, struct mk_request *req)
{
    struct lookup *l = (struct lookup *)job;
    if (req)
        l->fn(req, l->err, &l->script, l->ctx);
}

int mk_cgi_lookup(struct mk_request *req, const struct mk_cgi_place *place, enum mk_cgi_find how, struct mk_str path,
                  mk_cgi_found_fn fn, void *ctx)
{
    static const struct mk_request_job_type type = {sizeof(struct lookup), run_lookup, end_lookup};
    struct lookup *l = mk_request_job_new(req, &type, path);
    if (!l)
        return -ENOMEM;
    l->place = *place;
    l->how = how;
    l->fn = fn;
    l->ctx = ctx;
    return mk_request_job_start(&l->base);
}
