// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

#include <monkey/base/file.h>

#include <assert.h>
#include <errno.h>

extern const struct mk_plugin mk_plugin_logger;

int hosts_start_generation(struct mk_generation *g, void **ret_state)
{
    struct log_table *t = mk_account_alloc(NULL, sizeof(*t));
    if (!t)
        return -ENOMEM;
    *t = (struct log_table){.writer = mk_generation_plugin_state(g, &mk_plugin_logger)};
    *ret_state = t;
    return 0;
}

void hosts_stop_generation(struct mk_generation *g, void *state)
{
    struct log_table *t = state;
    (void)g;
    for (unsigned i = 0; i < t->n; i++)
        mk_log_target_put(t->rows[i].target);
    mk_account_free(NULL, t->rows, t->max * sizeof(*t->rows));
    mk_account_free(NULL, t, sizeof(*t));
}

static int grow_table(struct log_table *t)
{
    unsigned max = t->max ? 2 * t->max : 8;
    struct log_table_row *rows = mk_account_grow(NULL, t->rows, t->max * sizeof(*rows), max * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    t->rows = rows;
    t->max = max;
    return 0;
}

/* Adds a log, unless the table has it. Returns its index or -ENOMEM. */
static int add_target(struct log_table *t, const struct mk_log_dest *dest, bool wait)
{
    struct mk_log_target *target = t->n < t->max || grow_table(t) == 0 ? mk_log_target_get(t->writer, dest) : NULL;
    if (!target)
        return -ENOMEM;
    for (unsigned i = 0; i < t->n; i++)
        if (t->rows[i].target == target) {
            mk_log_target_put(target);
            t->rows[i].wait |= wait;
            return (int)i;
        }
    assert(t->n < t->max);
    t->rows[t->n] = (struct log_table_row){target, wait};
    return (int)t->n++;
}

/* Sets the index of a log. Returns 0, -EINVAL (an error was reported) or -ENOMEM. */
static int open_log(struct mk_host *host, struct log_table *t, struct logger_logs *logs, enum log_kind log)
{
    static const size_t offsets[LOGS] = {offsetof(struct logger_host_conf, dests[ACCESS]),
                                         offsetof(struct logger_host_conf, dests[ERRORS])};
    const struct mk_log_dest *dest = &logs->settings->dests[log];
    logs->indexes[log] = -1;
    if (dest->kind == MK_LOG_DEST_OFF)
        return 0;
    struct mk_generation *g = mk_host_generation(host);
    if (dest->kind == MK_LOG_DEST_FILE && mk_generation_is_in_sites(g, dest->path)) {
        mk_host_error(host, logs->settings, offsets[log], 0,
                      "%s would be a host, as each file of sites/ is: write a path in another folder", dest->path.p);
        return -EINVAL;
    }
    int err = mk_generation_is_after_root(g) ? 0 : mk_log_target_check(t->writer, dest);
    int number = err == 0 ? add_target(t, dest, logs->settings->when_full == WHEN_FULL_WAIT) : -1;
    if (err == 0 && number < 0)
        return number;
    uint32_t uid, gid;
    if (err == 0 && mk_generation_drops_root(g, &uid, &gid))
        err = mk_log_target_open(t->rows[number].target, uid, gid);
    if (err < 0) {
        mk_host_error(host, logs->settings, offsets[log], 0, "cannot write %s: %s", dest->path.p, mk_file_error(err));
        return -EINVAL;
    }
    logs->indexes[log] = number;
    return 0;
}

/* Tells whether requests of a host may be forwarded, so that they have the notes of an upstream. */
static bool forwards_requests(const struct mk_host *host)
{
    static const struct mk_str sections[] = {MK_STR_INIT("PROXY"), MK_STR_INIT("FASTCGI"), MK_STR_INIT("SCGI")};
    for (size_t i = 0; i < MK_COUNT_OF(sections); i++)
        if (mk_host_has_section(host, sections[i]))
            return true;
    return false;
}

/* Opens the logs of a section. Returns as open_log(). */
static int open_logs(struct mk_host *host, struct logger_logs *logs, const struct logger_host_conf *settings)
{
    struct log_table *t = mk_generation_state(mk_host_generation(host), &mk_plugin_logger);
    int err = 0;
    *logs = (struct logger_logs){.settings = settings, .number = t->sections++};
    bool is_gateway = forwards_requests(host);
    for (int log = 0; log < LOGS && err != -ENOMEM; log++) {
        const struct format *f = &settings->formats[log];
        logs->formats[log] = is_gateway && f->of_gateways ? f->of_gateways : f;
        int r = open_log(host, t, logs, (enum log_kind)log);
        err = r < 0 ? r : err;
    }
    return err;
}

static size_t count_host_bytes(unsigned n)
{
    return sizeof(struct logger_host) + n * sizeof(struct logger_logs);
}

int hosts_start(struct mk_host *host, void **ret_state)
{
    const struct mk_conf_section *section = &logger_sections[SETTINGS_HOST];
    const void *first_shared = mk_host_server_conf(host, section);
    unsigned n = 0;
    int err = 0;
    for (const void *s = mk_host_conf(host, section); s; s = mk_host_conf_next(host, section, s))
        n++;
    struct logger_host *h = n ? mk_account_alloc(NULL, count_host_bytes(n)) : NULL;
    if (!h)
        return n ? -ENOMEM : 0;
    *h = (struct logger_host){.n_own = n};
    for (const void *s = mk_host_conf(host, section); s && err != -ENOMEM; s = mk_host_conf_next(host, section, s)) {
        if (s == first_shared)
            h->n_own = h->n;
        int r = open_logs(host, &h->logs[h->n++], s);
        err = r < 0 ? r : err;
    }
    if (err < 0)
        mk_account_free(NULL, h, count_host_bytes(n));
    else
        *ret_state = h;
    return err;
}

void hosts_stop(struct mk_host *host, void *state)
{
    const struct logger_host *h = state;
    (void)host;
    if (h)
        mk_account_free(NULL, state, count_host_bytes(h->n));
}

const struct logger_logs *hosts_find_logs(const struct logger_host *h, struct mk_str path, unsigned *at, bool *own)
{
    if (path.len == 0 || path.p[0] != '/')
        path = MK_STR("/"); /* CONNECT, OPTIONS *, and requests that could not be read */
    while (h && *at < h->n) {
        const struct logger_logs *logs = &h->logs[(*at)++];
        if (*own && *at > h->n_own)
            return NULL;
        if (mk_pattern_match(&logs->settings->match, path) == 0)
            continue;
        *own = *at <= h->n_own;
        return logs;
    }
    return NULL;
}
