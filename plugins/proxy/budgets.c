// SPDX-License-Identifier: Apache-2.0
/*
 * Makes budgets (budgets.h).
 */
#include "budgets.h"

#include <errno.h>

static const char default_folder[] = "/var/tmp";

static struct mk_spool_limits limits_of(const struct spool_conf *conf)
{
    return (struct mk_spool_limits){.memory_max = conf->memory_bytes,
                                    .disk_max = conf->disk_bytes,
                                    .files_max = (uint64_t)conf->files};
}

/* A folder that cannot be used is not an error yet: responses can do without. */
static struct budget *make_budget(const char *folder, const struct spool_conf *conf)
{
    size_t len = strlen(folder) + 1;
    struct mk_spool_limits limits = limits_of(conf);
    struct budget *b = mk_account_alloc(NULL, sizeof(*b) + len);
    if (!b)
        return NULL;
    *b = (struct budget){.bytes = sizeof(*b) + len};
    memcpy(b->folder, folder, len);
    int err = mk_spool_budget_new(folder, &limits, &b->spools);
    if (err < 0 && err != -ENOMEM) {
        b->err = err;
        err = mk_spool_budget_new(NULL, &limits, &b->spools);
    }
    if (err == 0)
        return b;
    mk_account_free(NULL, b, b->bytes);
    return NULL;
}

struct budget *budgets_hold(struct budgets *all, const struct spool_conf *conf)
{
    const char *folder = conf->folder.len ? conf->folder.p : default_folder;
    struct budget *b = all->first;
    while (b && (b->err || strcmp(b->folder, folder) != 0)) /* a folder that failed is tried again */
        b = b->next;
    if (!b) {
        b = make_budget(folder, conf);
        if (!b)
            return NULL;
        b->next = all->first;
        all->first = b;
    }
    b->refs++;
    return b;
}

void budgets_put(struct budgets *all, struct budget *b)
{
    if (--b->refs)
        return;
    struct budget **at = &all->first;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    mk_spool_budget_free(b->spools);
    mk_account_free(NULL, b, b->bytes);
}

void budget_set_limits(struct budget *b, const struct spool_conf *conf)
{
    struct mk_spool_limits limits = limits_of(conf);
    mk_spool_budget_set_limits(b->spools, &limits);
}
