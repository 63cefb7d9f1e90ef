// SPDX-License-Identifier: Apache-2.0
/*
 * A job for each path (lookup.h).
 */
#include "lookup.h"

#include <monkey/kit/request_job.h>

#include <errno.h>

struct lookup {
    struct mk_request_job base; /* with the path */
    const struct fastcgi_conf *conf;
    const struct mk_host *host;
    lookup_fn fn;
    struct resolution found;
};

static void run_lookup(struct mk_request_job *job)
{
    struct lookup *l = (struct lookup *)job;
    resolve_path(l->conf, l->host, job->text, &l->found);
}

static void end_lookup(struct mk_request_job *job, struct mk_request *req)
{
    struct lookup *l = (struct lookup *)job;
    if (req)
        l->fn(req, l->conf, &l->found);
}

int lookup_start(struct mk_request *req, const struct fastcgi_conf *conf, lookup_fn fn)
{
    static const struct mk_request_job_type type = {sizeof(struct lookup), run_lookup, end_lookup};
    struct lookup *l = mk_request_job_new(req, &type, mk_request_path(req));
    if (!l)
        return -ENOMEM;
    l->conf = conf;
    l->host = mk_request_host_conf(req);
    l->fn = fn;
    return mk_request_job_start(&l->base);
}
