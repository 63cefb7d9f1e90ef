// SPDX-License-Identifier: Apache-2.0
/*
 * Checks a section [UPSTREAM] as a whole: servers that stand twice or of which none can be used, and keys without
 * effect.
 */
#include "conf.h"

/* ── servers ── */

static bool is_same_server(const struct server_line *a, const struct server_line *b)
{
    const struct mk_dial_target *x = a->target, *y = b->target;
    bool is_path = !x->port && !y->port;
    return a->is_srv == b->is_srv && x->port == y->port &&
           (is_path ? mk_str_eq(x->host, y->host) : mk_str_ieq(x->host, y->host));
}

static void report_duplicate_servers(const struct mk_conf_check *check, const struct server_lines *lines, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (is_same_server(&lines->items[i], &lines->items[k]))
            mk_conf_error_nth(
                check, offsetof(struct upstream_conf, servers), i,
                "the server %.*s is in this group already: write one line, with `weight=2` for a larger share",
                MK_STR_ARG(lines->items[i].name));
}

/* A line `Server srv:...`. */
static void check_service(const struct mk_conf_check *check, const struct upstream_conf *conf, uint32_t i)
{
    size_t key = offsetof(struct upstream_conf, servers);
    if (!conf->servers.items[i].is_srv)
        return;
    if (!conf->resolve_ms)
        mk_conf_error_nth(check, key, i, "SRV records need Resolve: a connection has no time to look them up");
    if (conf->servers.items[i].weight != 1)
        mk_conf_error_nth(check, key, i, "the SRV records have the weights");
}

static void check_servers(const struct mk_conf_check *check, const struct upstream_conf *conf)
{
    size_t key = offsetof(struct upstream_conf, servers);
    uint64_t weights = 0;
    bool is_usable = false;
    for (uint32_t i = 0; i < conf->servers.n; i++) {
        const struct server_line *line = &conf->servers.items[i];
        weights += line->weight;
        is_usable |= !line->is_down && !line->is_draining && line->weight;
        report_duplicate_servers(check, &conf->servers, i);
        check_service(check, conf, i);
    }
    if (conf->servers.n && !weights)
        mk_conf_error(check, key,
                      "all servers have the weight 0: none would get a request; leave out `weight=0` of one");
    else if (conf->servers.n && !is_usable)
        mk_conf_warn(check, key,
                     "all servers are down, drain or have the weight 0: requests get 503 until the shell sets one up");
}

/* ── keys without effect ── */

/* What a key needs to have an effect. */
enum { NEEDS_HASH = 1, NEEDS_STICKY = 2, NEEDS_QUEUE = 4, NEEDS_RETRIES = 8, NEEDS_EJECTIONS = 16 };

static const struct {
    unsigned need;
    const char *phrase;
} needs[] = {
    {NEEDS_HASH, "without Balance Hash"},
    {NEEDS_STICKY, "without Balance Sticky"},
    {NEEDS_QUEUE, "without MaxConnections and Queue: no request waits"},
    {NEEDS_RETRIES, "with Retry Off"},
    {NEEDS_EJECTIONS, "with EjectAfter 0"},
};

#define ROW(name, field, usual, need) \
    { \
        name, offsetof(struct upstream_conf, field), sizeof(((struct upstream_conf *)0)->field), usual, need \
    }

/* Numbers that are not as without the key: one that says the same as the default does no harm. */
static const struct {
    const char *name;
    size_t offset, size;
    int64_t usual;
    unsigned needs;
} rows[] = {
    ROW("HashBy", hash_by.kind, HASH_BY_CLIENT, NEEDS_HASH), ROW("QueueTimeout", queue_timeout_ms, 5000, NEEDS_QUEUE),
    ROW("RetryMost", retry_most, 2, NEEDS_RETRIES),          ROW("RetryTime", retry_time_ms, 10000, NEEDS_RETRIES),
    ROW("RetryBudget", retry_budget, 20, NEEDS_RETRIES),     ROW("EjectSlower", eject_slower_ms, 0, NEEDS_EJECTIONS),
    ROW("EjectTime", eject_time_ms, 10000, NEEDS_EJECTIONS), ROW("EjectMost", eject_most, 50, NEEDS_EJECTIONS),
};

static int64_t get_number(const struct upstream_conf *conf, size_t offset, size_t size)
{
    const char *field = (const char *)conf + offset;
    if (size == sizeof(uint8_t))
        return *(const uint8_t *)field;
    return size == sizeof(uint32_t) ? *(const uint32_t *)field : *(const int64_t *)field;
}

static unsigned get_lacks(const struct upstream_conf *conf)
{
    return (conf->balance != UPSTREAM_HASH ? NEEDS_HASH : 0) | (conf->balance != UPSTREAM_STICKY ? NEEDS_STICKY : 0) |
           (!conf->max_connections || !conf->queue ? NEEDS_QUEUE : 0) |
           (conf->retry.kind == RETRY_OFF ? NEEDS_RETRIES : 0) | (!conf->eject_after ? NEEDS_EJECTIONS : 0);
}

static void warn_of_unused(const struct mk_conf_check *check, const char *name, size_t offset, unsigned lack)
{
    for (size_t i = 0; i < MK_COUNT_OF(needs); i++)
        if (needs[i].need == lack)
            mk_conf_warn(check, offset, "%s has no effect %s", name, needs[i].phrase);
}

static void check_effects(const struct mk_conf_check *check, const struct upstream_conf *conf)
{
    size_t cookie = offsetof(struct upstream_conf, sticky_cookie);
    unsigned lacks = get_lacks(conf);
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++)
        if (lacks & rows[i].needs && get_number(conf, rows[i].offset, rows[i].size) != rows[i].usual)
            warn_of_unused(check, rows[i].name, rows[i].offset, rows[i].needs);
    if (lacks & NEEDS_STICKY && !mk_str_eq(conf->sticky_cookie.name, MK_STR(UPSTREAM_COOKIE)))
        warn_of_unused(check, "StickyCookie", cookie, NEEDS_STICKY);
}

/* Keys that would be taken for a protection which is not there. */
static void check_pairs(const struct mk_conf_check *check, const struct upstream_conf *conf)
{
    if (conf->queue && !conf->max_connections &&
        !mk_conf_is_wrong(check, offsetof(struct upstream_conf, max_connections)))
        mk_conf_error(check, offsetof(struct upstream_conf, queue),
                      "no request waits without MaxConnections: say how many a server may have");
    if (conf->sticky_secret.len && conf->balance != UPSTREAM_STICKY)
        mk_conf_error(check, offsetof(struct upstream_conf, sticky_secret), "it is for Balance Sticky");
}

void upstream_conf_check(const struct mk_conf_check *check, void *section)
{
    check_servers(check, section);
    check_pairs(check, section);
    check_effects(check, section);
}
