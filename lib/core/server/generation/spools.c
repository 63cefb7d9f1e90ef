// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the budgets of [SPOOL] (server/generation/spools.h). In the hooks of the configuration, of which one runs at a
 * time.
 */
#include "server/generation/spools.h"

#include <monkey/kit/spool.h>

#include <errno.h>

struct spool_conf {
    struct mk_str folder; /* empty: not set */
    uint64_t memory_bytes, disk_bytes;
    int64_t files;
};

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATH(struct spool_conf, folder, "Folder", NULL,
                     "Where files are made, which have no names there. The user of the server must be able to write "
                     "to it, and no other should. If it is not set: `/var/tmp`."),
    MK_CONF_KEY_SIZE(struct spool_conf, memory_bytes, "MaxMemory", "128M",
                     "What all bodies together may have in memory. Each one reserves up to 128K.", .min = 0,
                     .max = INT64_C(1) << 40),
    MK_CONF_KEY_SIZE(struct spool_conf, disk_bytes, "MaxDisk", "4G", "What they may have in files; 0: no files.",
                     .min = 0, .max = INT64_C(1) << 50),
    MK_CONF_KEY_INT(struct spool_conf, files, "MaxFiles", "1024",
                    "How many files they may have. Each one is a descriptor.", .min = 0, .max = 1 << 20),
    {0},
};

const struct mk_conf_section mk__section_spool = {
    .name = "SPOOL",
    .scope = MK_CONF_SCOPE_SERVER,
    .size = sizeof(struct spool_conf),
    .keys = keys,
    .doc = MK_CONF_DOC("Where bodies wait for slow clients and backends (`BufferResponse` and `SpoolRequest` of "
                       "`[PROXY]` and others), and how much of them, in the whole process. A reload changes it; bodies "
                       "that wait already stay where they are."),
};

/* The budget of a folder. */
struct mk__spools {
    struct mk__spools *next;
    struct mk_spool_budget *budget;
    unsigned refs; /* generations */
    int err;       /* of the folder: no files are made; 0: none */
    size_t bytes;  /* of this struct */
    char folder[];
};

static const char default_folder[] = "/var/tmp";
static struct mk__spools *all; /* of the process */

static struct mk_spool_limits get_limits(const struct spool_conf *conf)
{
    return (struct mk_spool_limits){.memory_max = conf->memory_bytes,
                                    .disk_max = conf->disk_bytes,
                                    .files_max = (uint64_t)conf->files};
}

/* A folder that cannot be used is not an error yet: responses can do without. */
static MK_COLD struct mk__spools *make_spools(const char *folder, const struct spool_conf *conf)
{
    size_t len = strlen(folder) + 1;
    struct mk_spool_limits limits = get_limits(conf);
    struct mk__spools *s = mk_account_alloc(NULL, sizeof(*s) + len);
    if (!s)
        return NULL;
    *s = (struct mk__spools){.bytes = sizeof(*s) + len};
    memcpy(s->folder, folder, len);
    int err = mk_spool_budget_new(folder, &limits, &s->budget);
    if (err < 0 && err != -ENOMEM) {
        s->err = err;
        err = mk_spool_budget_new(NULL, &limits, &s->budget);
    }
    if (err == 0)
        return s;
    mk_account_free(NULL, s, s->bytes);
    return NULL;
}

/* Finds or makes the budget of a configuration, and holds it. Limits of one that exists stay. NULL: no memory. */
static struct mk__spools *hold_spools(const struct spool_conf *conf)
{
    const char *folder = conf->folder.len ? conf->folder.p : default_folder;
    struct mk__spools *s = all;
    /* a folder that has failed, or fails now, is tried anew */
    while (s && (s->err || strcmp(s->folder, folder) != 0 || mk_spool_budget_reopen(s->budget, folder) < 0))
        s = s->next;
    if (!s) {
        s = make_spools(folder, conf);
        if (!s)
            return NULL;
        s->next = all;
        all = s;
    }
    s->refs++;
    return s;
}

int mk_host_hold_spools(struct mk_host *host, const char **ret_folder, int *ret_err)
{
    struct mk_generation *g = host->generation;
    const struct spool_conf *conf = mk_generation_conf(g, &mk__section_spool);
    if (!g->spools)
        g->spools = hold_spools(conf);
    if (!g->spools)
        return -ENOMEM;
    *ret_folder = g->spools->folder;
    *ret_err = g->spools->err;
    if (!g->spools->err || !conf->folder.len)
        return 0;
    mk_host_error(host, conf, offsetof(struct spool_conf, folder), 0, "no file can be made in \"%s\": %s",
                  g->spools->folder, strerror(-g->spools->err));
    return -EINVAL;
}

struct mk_spool_budget *mk_generation_spools(const struct mk_generation *g)
{
    return g->spools ? g->spools->budget : NULL;
}

void mk__spools_serve(const struct mk_generation *g)
{
    if (!g->spools)
        return;
    struct mk_spool_limits limits = get_limits(mk_generation_conf(g, &mk__section_spool));
    mk_spool_budget_set_limits(g->spools->budget, &limits);
}

void mk__spools_put(struct mk_generation *g)
{
    struct mk__spools *s = g->spools, **at = &all;
    g->spools = NULL;
    if (!s || --s->refs)
        return;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    mk_spool_budget_free(s->budget);
    mk_account_free(NULL, s, s->bytes);
}
