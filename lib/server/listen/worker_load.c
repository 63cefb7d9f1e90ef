// SPDX-License-Identifier: Apache-2.0
/*
 * What the fair scheduler and the limit of descriptors need of the server as a whole: starts and stops the balancer,
 * and sets RLIMIT_NOFILE.
 */
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>

bool mk__server_has_balancer(const struct mk_server *s)
{
    return s->current->settings->scheduler == MK__SCHEDULER_FAIR;
}

int mk__server_start_balancer(struct mk_server *s)
{
    struct mk__balancer_update update;
    int err = mk__balance_prepare(&update, &s->balancer, &s->listeners, s->n_workers);
    if (err == 0) {
        memcpy(update.workers, s->workers, s->n_workers * sizeof(struct mk__thread *));
        mk__balance_apply(&update, &s->main_thread->loop);
        mk__balance_open_pending(&update);
    }
    mk__balance_free_update(&update);
    return err;
}

/* Connections that were handed over and not taken yet are closed by mk__receiver_close(). */
void mk__server_stop_balancer(struct mk_server *s)
{
    struct mk__balancer_update update;
    if (!s->balancer.n_workers)
        return;
    mk__balance_prepare(&update, &s->balancer, &s->listeners, 0);
    mk__balance_apply(&update, &s->main_thread->loop);
    mk__balance_free_update(&update);
}

void mk__server_limit_descriptors(struct mk_server *s, const struct mk__settings *settings)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)settings->descriptors_max;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (!wanted && !s->fd_limit_before))
        return;
    if (!s->fd_limit_before)
        s->fd_limit_before = limit.rlim_cur;
    if (!wanted)
        wanted = (rlim_t)s->fd_limit_before;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted)
        mk_log_warn("FDLimit %" PRIu64 " is more than the hard limit (ulimit -Hn), which is used instead: %" PRIu64,
                    (uint64_t)wanted, (uint64_t)limit.rlim_max);
}

void mk__server_check_descriptors(struct mk_server *s)
{
    struct rlimit limit;
    const struct mk__settings *settings = s->current->settings;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || (rlim_t)settings->descriptors_max <= limit.rlim_max)
        return;
    mk__conf_warn(s->current->conf,
                  mk__conf_origin(s->current->set, settings, offsetof(struct mk__settings, descriptors_max), 0),
                  "FDLimit is more than the hard limit (ulimit -Hn), which would be used instead: %" PRIu64,
                  (uint64_t)limit.rlim_max);
}
