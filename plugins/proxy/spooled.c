// SPDX-License-Identifier: Apache-2.0
/*
 * Opens and closes the spools of exchanges (spooled.h).
 */
#include "spooled.h"

#include "process.h"

#include <errno.h>

static void call_ready(struct mk_spool *spool, unsigned what, void *ctx)
{
    struct spooled *s = ctx;
    (void)spool;
    s->ready(s->user, what);
}

static void free_spooled(void *ctx)
{
    struct spooled *s = ctx;
    struct mk_worker *worker = s->worker;
    mk_account_free(s->account, s, sizeof(*s));
    mk_worker_put(worker);
}

int spooled_open(struct mk_worker *worker, const struct spooled_limits *limits, spooled_fn ready, void *user,
                 struct spooled **ret)
{
    const struct generation *g = mk_generation_state(mk_worker_generation(worker), &mk_plugin_proxy);
    struct mk_account *account = mk_worker_account(worker);
    struct spooled *s = mk_account_alloc(account, sizeof(*s));
    if (!s)
        return -ENOMEM;
    *s = (struct spooled){.worker = worker, .account = account, .ready = ready, .user = user};
    const struct mk_spool_options options = {.budget = g->budget->spools,
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

void spooled_close(struct spooled *s)
{
    if (s)
        mk_spool_close(s->spool);
}
