// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of hosts by Listen line (server/generation/bound_hosts.h). Names are added by generation_load.c, in the
 * order of the hosts, so that a duplicate is reported at the later one.
 */
#include "server/generation/bound_hosts.h"

#include "conf/suggest.h"

#include <assert.h>
#include <errno.h>

static bool is_bound(const struct mk_host *host)
{
    return host->settings && host->settings->listeners.n;
}

bool mk__bound_hosts_answers(const struct mk_host *host, const struct mk__listen_conf *listen)
{
    if (!is_bound(host))
        return true;
    for (uint32_t i = 0; i < host->settings->listeners.n; i++)
        if (mk_str_eq(host->settings->listeners.items[i], listen->text))
            return true;
    return false;
}

bool mk_host_is_public(const struct mk_host *host)
{
    const struct mk__listen_confs *all = &host->generation->settings->listen;
    for (uint32_t i = 0; i < all->n; i++)
        if (!mk__addr_is_local(&all->items[i].addr) && mk__bound_hosts_answers(host, &all->items[i]))
            return true;
    return false;
}

bool mk_host_has_section(const struct mk_host *host, struct mk_str name)
{
    const struct mk_generation *g = host->generation;
    for (unsigned i = 0; i < g->n_plugins; i++)
        for (const struct mk_conf_section *s = g->plugins[i]->sections; s && s->name; s++)
            if (s->scope == MK_CONF_SCOPE_HOST && s->flags & MK_CONF_REPEAT && mk_str_eq(mk_str_c(s->name), name) &&
                mk_host_conf(host, s))
                return true;
    return false;
}

/* ── checks ── */

static void report_unknown(struct mk_generation *g, const struct mk_host *host, uint32_t nth)
{
    struct mk_str text = host->settings->listeners.items[nth];
    struct mk__suggestion suggestion = mk__suggest_init(text);
    if (mk__conf_is_consequence(g->set, g->settings, offsetof(struct mk__settings, listen), 0)) {
        mk__conf_suppress(g->conf); /* the line is there, but has an error */
        return;
    }
    for (uint32_t i = 0; i < g->settings->listen.n; i++)
        mk__suggest_add(&suggestion, g->settings->listen.items[i].text.p);
    mk__conf_error(g->conf,
                   mk__conf_origin(host->set, host->settings, offsetof(struct mk__host_settings, listeners), nth),
                   "there is no line \"Listen %.*s\"%s%s%s", MK_STR_ARG(text),
                   suggestion.name ? MK__SUGGEST_PHRASE : "", suggestion.name ? suggestion.name : "",
                   suggestion.name ? "?" : "");
}

static void check_listeners(struct mk_generation *g, const struct mk_host *host)
{
    for (uint32_t i = 0; i < host->settings->listeners.n; i++)
        if (!mk__settings_find_listener(g->settings, host->settings->listeners.items[i]))
            report_unknown(g, host, i);
}

/*
 * Returns the host for names that no host has: the first that is bound to this line, else sites/default, else the first
 * that is not bound. sites/default is the first of those that are bound, too. NULL: no host answers there.
 */
static struct mk_host *find_default(const struct mk_generation *g, const struct mk__listen_conf *listen)
{
    struct mk_host *best = NULL;
    unsigned best_rank = 0;
    for (struct mk_host *host = g->hosts; host; host = host->next) {
        unsigned rank = 1u + 2 * is_bound(host) + (host == g->default_host);
        if (mk__bound_hosts_answers(host, listen) && rank > best_rank) {
            best = host;
            best_rank = rank;
        }
    }
    return best;
}

/* A listener that no line sets is the only one: each host has a "Listener" that was reported as unknown. */
static void report_empty(struct mk_generation *g, uint32_t nth)
{
    struct mk__conf_origin origin = mk__conf_origin(g->set, g->settings, offsetof(struct mk__settings, listen),
                                                    mk__settings_listen_line(g->settings, nth));
    if (origin.source)
        mk__conf_error(g->conf, origin, "no host answers at this listener: each has \"Listener\" with other ones");
    assert(mk__conf_errors(g->conf) > 0);
}

/* ── tables ── */

int mk__bound_hosts_prepare(struct mk_generation *g, size_t names)
{
    bool bound = false;
    int err = 0;
    for (const struct mk_host *host = g->hosts; host; host = host->next)
        if (is_bound(host)) {
            bound = true;
            check_listeners(g, host);
        }
    if (!bound)
        return 0;
    struct mk__bound_hosts *all = mk_arena_zalloc(&g->arena, (g->settings->listen.n + 1) * sizeof(*all));
    if (!all)
        return -ENOMEM;
    for (uint32_t i = 0; i < g->settings->listen.n && err == 0; i++) {
        all[i].default_host = find_default(g, &g->settings->listen.items[i]);
        if (!all[i].default_host)
            report_empty(g, i);
        err = mk__vhost_init(&all[i].vhosts, &g->arena, names);
    }
    g->bound = err == 0 ? all : NULL;
    return err;
}

int mk__bound_hosts_add(struct mk_generation *g, struct mk_str name, struct mk_host *host, uint32_t nth,
                        const char **ret_reason, const struct mk__vhost **ret_first)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++) {
        int err = mk__bound_hosts_answers(host, &g->settings->listen.items[i])
                      ? mk__vhost_add(&g->bound[i].vhosts, name, host, nth, ret_reason, ret_first)
                      : 0;
        if (err < 0)
            return err;
    }
    return 0;
}

bool mk__bound_hosts_is_default(const struct mk_host *host)
{
    const struct mk_generation *g = host->generation;
    for (uint32_t i = 0; g->bound && i < g->settings->listen.n; i++)
        if (g->bound[i].default_host == host)
            return true;
    return host == g->default_host;
}
