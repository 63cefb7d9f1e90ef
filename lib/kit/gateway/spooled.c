// SPDX-License-Identifier: Apache-2.0
/*
 * Opens and closes the spools of exchanges (spooled.h).
 */
#include "spooled.h"

#include <errno.h>

static void call_ready(struct mk_spool *spool, unsigned what, void *ctx)
{
    struct mk__gw_spooled *s = ctx;
    (void)spool;
    s->ready(s->user, what);
}

static void free_spooled(void *ctx)
{
    struct mk__gw_spooled *s = ctx;
    struct mk_worker *worker = s->worker;
    mk_account_free(s->account, s, sizeof(*s));
    mk_worker_put(worker);
}

int mk__gw_spooled_open(struct mk_worker *worker, const struct mk__gw_spooled_limits *limits, mk__gw_spooled_fn ready,
                        void *user, struct mk__gw_spooled **ret)
{
    struct mk_account *account = mk_worker_account(worker);
    struct mk__gw_spooled *s = mk_account_alloc(account, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct mk__gw_spooled){.worker = worker, .account = account, .ready = ready, .user = user};
    const struct mk_spool_options options = {.budget = mk_generation_spools(mk_worker_generation(worker)),
                                             .loop = mk_worker_loop(worker),
                                             .account = account,
                                             .memory_max = limits->memory_max,
                                             .file_max = limits->file_max,
                                             .is_kept = limits->is_kept,
                                             .disk_is_optional = !limits->is_kept,
                                             .ready = call_ready,
                                             .freed = free_spooled,
                                             .ctx = s};
    int err = mk_spool_open(&options, &s->spool);
    if (err < 0) {
        mk_account_free(account, s, sizeof(*s));
        return err;
    }
    mk_worker_get(worker);
    *ret = s;
    return 0;
}

void mk__gw_spooled_close(struct mk__gw_spooled *s)
{
    if (s)
        mk_spool_close(s->spool);
}
