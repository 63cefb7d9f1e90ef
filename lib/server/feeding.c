// SPDX-License-Identifier: Apache-2.0
/*
 * What the fair scheduler and the limits of the process need of the server as a whole: who is fed, from when to when,
 * and how many descriptors there are.
 */
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

bool mk__server_is_fair(const struct mk_server *s)
{
    return s->now->settings->scheduler == MK__FAIR;
}

int mk__server_start_feeding(struct mk_server *s)
{
    struct mk__fair_step step;
    int err = mk__fair_prepare(&step, &s->fair, &s->sockets, s->n_workers);
    if (err == 0) {
        memcpy(step.workers, s->workers, s->n_workers * sizeof(struct mk__worker *));
        mk__fair_take(&step, &s->process->loop);
        mk__fair_open_fresh(&step);
    }
    mk__fair_free(&step);
    return err;
}

/* What was given to workers and they have not seen is found when they are closed. */
void mk__server_end_feeding(struct mk_server *s)
{
    struct mk__fair_step step;
    if (!s->fair.n_workers)
        return;
    mk__fair_prepare(&step, &s->fair, &s->sockets, 0);
    mk__fair_take(&step, &s->process->loop);
    mk__fair_free(&step);
}

void mk__server_limit_descriptors(struct mk_server *s, const struct mk__settings *settings)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)settings->descriptors_max;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (!wanted && !s->descriptors_before))
        return;
    if (!s->descriptors_before)
        s->descriptors_before = limit.rlim_cur;
    if (!wanted)
        wanted = (rlim_t)s->descriptors_before;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted)
        mk_log_warn("FDLimit %" PRIu64 " is more than the hard limit (ulimit -Hn), which is used instead: %" PRIu64,
                    (uint64_t)wanted, (uint64_t)limit.rlim_max);
}

void mk__server_check_descriptors(struct mk_server *s)
{
    struct rlimit limit;
    const struct mk__settings *settings = s->now->settings;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)settings->descriptors_max <= limit.rlim_max)
        return;
    mk__conf_warn(s->now->conf,
                  mk__conf_origin(s->now->set, settings, offsetof(struct mk__settings, descriptors_max), 0),
                  "FDLimit is more than the hard limit (ulimit -Hn), which would be used instead: %" PRIu64,
                  (uint64_t)limit.rlim_max);
}
