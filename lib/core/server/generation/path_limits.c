// SPDX-License-Identifier: Apache-2.0
/*
 * [LIMITS] (server/generation/path_limits.h). All limits are merged when the configuration is loaded: a request only
 * looks for its row.
 */
#include "server/generation/path_limits.h"

#include <errno.h>

struct limits_section {
    struct mk_pattern match;
    struct mk__http_limits limits; /* 0: not set */
};

#define LIMIT(kind, field, name, ...) \
    MK_CONF_KEY_##kind(struct limits_section, limits.field, name, NULL, \
                       "For these paths, instead of `" name "` of the host or the server.", __VA_ARGS__)

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_PATTERN(struct limits_section, match, "Match", "/",
                        "Which paths: `=/exact`, `/prefix` with everything below it, a glob such as `*.cgi`, or a "
                        "regular expression such as `~^/v[0-9]+/` (`~*` ignores the case)."),
    MK__LIMIT_KEYS(LIMIT),
    {0},
};

const struct mk_conf_section mk__section_limits = {
    .name = "LIMITS",
    .scope = MK_CONF_SCOPE_HOST,
    .flags = MK_CONF_REPEAT,
    .size = sizeof(struct limits_section),
    .keys = keys,
    .doc = MK_CONF_DOC("Limits for requests by path. The first section that matches a path is used, as a whole. A "
                       "limit that it does not set is that of [HOST], else that of [SERVER]; one of [HOST] has "
                       "precedence over sections in `monkey.conf`."),
};

static uint32_t count_sections(const struct mk_host *host)
{
    uint32_t n = 0;
    for (const void *s = mk_host_conf(host, &mk__section_limits); s;
         s = mk_host_conf_next(host, &mk__section_limits, s))
        n++;
    return n;
}

/* Fills a row. `own`: the section is in the host's file. */
static void make_row(const struct mk_host *host, const struct limits_section *s, bool own,
                     struct mk__path_limits_row *row)
{
    row->match = &s->match;
    row->limits = own ? host->limits : host->generation->http.limits;
    mk__settings_limits(&s->limits, &row->limits);
    if (!own)
        mk__settings_limits(&host->settings->limits, &row->limits);
}

static void add_row(const struct mk_host *host, const struct limits_section *s, bool own, struct mk__path_limits *all)
{
    struct mk__path_limits_row *row = &all->rows[all->n++];
    make_row(host, s, own, row);
    if (row->limits.body_bytes_max > all->preliminary.body_bytes_max)
        all->preliminary.body_bytes_max = row->limits.body_bytes_max;
}

static const struct mk_pattern *get_pattern(const void *rows, uint32_t number)
{
    return ((const struct mk__path_limits_row *)rows)[number].match;
}

int mk__path_limits_make(struct mk_generation *g, struct mk_host *host)
{
    const struct limits_section *shared = mk_host_server_conf(host, &mk__section_limits);
    uint32_t n = count_sections(host);
    bool own = true;
    if (!n)
        return 0;
    struct mk__path_limits *all = mk_arena_alloc(&g->arena, sizeof(*all) + n * sizeof(all->rows[0]));
    if (!all)
        return -ENOMEM;
    *all = (struct mk__path_limits){.preliminary = host->limits};
    for (const struct limits_section *s = mk_host_conf(host, &mk__section_limits); s;
         s = mk_host_conf_next(host, &mk__section_limits, s)) {
        own = own && s != shared;
        add_row(host, s, own, all);
    }
    host->path_limits = all;
    all->index = mk_pattern_index_new(get_pattern, all->rows, n, &g->arena);
    if (!all->index)
        return -ENOMEM;
    int err = mk_host_check_patterns(host, &mk__section_limits, offsetof(struct limits_section, match));
    return err == -EINVAL ? 0 : err; /* it was reported */
}

uint32_t mk_host_handler_timeout_ms(const struct mk_host *host, uint32_t *ret_least)
{
    uint32_t own = host->limits.timeout_ms[MK__TIMEOUT_HANDLER];
    *ret_least = own;
    for (uint32_t i = 0; host->path_limits && i < host->path_limits->n; i++)
        if (host->path_limits->rows[i].limits.timeout_ms[MK__TIMEOUT_HANDLER] < *ret_least)
            *ret_least = host->path_limits->rows[i].limits.timeout_ms[MK__TIMEOUT_HANDLER];
    return own;
}

const struct mk__http_limits *mk__path_limits_find(const struct mk_host *host, struct mk_str path)
{
    const struct mk__path_limits *all = host->path_limits;
    path = mk__generation_rule_path(path);
    for (uint32_t i = 0; (i = mk_pattern_index_next(all->index, path, i)) < all->n; i++) {
        int match = mk_pattern_match(all->rows[i].match, path);
        if (match)
            return match > 0 ? &all->rows[i].limits : NULL;
    }
    return &host->limits;
}
