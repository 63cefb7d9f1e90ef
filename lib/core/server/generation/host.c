// SPDX-License-Identifier: Apache-2.0
/*
 * The host's functions for plugins (<monkey/plugin.h>): its configuration, and reports about it, while a generation is
 * prepared and later.
 */
#include "server/generation/generation.h"

#include <monkey/file_cache.h>
#include <monkey/hooks.h>
#include <monkey/upstreams.h>

#include "http/message/uri.h"
#include "server/generation/bound_hosts.h"

#include <assert.h>
#include <errno.h>

enum { ORIGIN_BYTES = 4096 };

const void *mk_host_conf(const struct mk_host *host, const struct mk_conf_section *section)
{
    assert(host->set);
    return mk__conf_get(host->set, section);
}

const void *mk_host_conf_next(const struct mk_host *host, const struct mk_conf_section *section, const void *data)
{
    return mk__conf_next(host->set, section, data);
}

const void *mk_host_conf_next_match(const struct mk_host *host, const struct mk_conf_section *section, size_t pattern,
                                    struct mk_str path, const void *data)
{
    return mk__rule_index_next(host->set, section, pattern, path, data);
}

const void *mk_host_conf_next_cover(const struct mk_host *host, const struct mk_conf_section *section, size_t pattern,
                                    const void *rule, const void *data)
{
    const struct mk__conf_set *set = mk__conf_is_of(host->set, rule) ? host->set : host->generation->set;
    data = mk__rule_index_next_cover(set, section, pattern, mk__conf_pattern(rule, pattern), data);
    return data == rule ? NULL : data;
}

int mk_host_conf_match(const struct mk_host *host, const struct mk_conf_section *section, size_t pattern,
                       struct mk_str path, const void **ret_section)
{
    int match = 0;
    path = mk__generation_rule_path(path);
    const void *data = mk_host_conf_next_match(host, section, pattern, path, NULL);
    while (data && (match = mk_pattern_match(mk__conf_pattern(data, pattern), path)) == 0)
        data = mk_host_conf_next_match(host, section, pattern, path, data);
    *ret_section = match > 0 ? data : NULL;
    return match < 0 ? match : 0;
}

const void *mk_host_server_conf(const struct mk_host *host, const struct mk_conf_section *section)
{
    return mk__conf_get(host->generation->set, section);
}

bool mk_host_has_listener(const struct mk_host *host, struct mk_str text)
{
    return mk__settings_find_listener(host->generation->settings, text) != NULL;
}

static bool is_in_list(const struct mk_conf_list *list, struct mk_str text)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (mk_str_eq(list->items[i], text))
            return true;
    return false;
}

bool mk_host_reserve_listeners(const struct mk_host *host, const struct mk_conf_list *listeners)
{
    const struct mk__listen_confs *all = &host->generation->settings->listen;
    bool is_left = false;
    for (uint32_t i = 0; i < all->n; i++) {
        all->items[i].reserved |= is_in_list(listeners, all->items[i].text);
        is_left |= !all->items[i].reserved;
    }
    return is_left;
}

void mk_host_use_access(struct mk_host *host)
{
    host->uses_access = true;
}

bool mk_host_uses_access(const struct mk_host *host)
{
    return host->uses_access;
}

void mk_host_accept_in_drain(struct mk_host *host, struct mk_str text)
{
    const struct mk__listen_confs *all = &host->generation->settings->listen;
    for (uint32_t i = 0; i < all->n; i++)
        if (mk_str_eq(all->items[i].text, text))
            all->items[i].accept_in_drain = true;
}

static bool has_transport(const struct mk_generation *g, const struct mk__listen_conf *one, struct mk_str name)
{
    return mk_str_ieq(one->transport.len ? one->transport : g->settings->transport, name);
}

static bool has_port(const struct mk_host *host, uint16_t port, struct mk_str transport)
{
    const struct mk_generation *g = host->generation;
    const struct mk__listen_confs *all = &g->settings->listen;
    for (uint32_t i = 0; i < all->n; i++)
        if (port && mk__addr_port(&all->items[i].addr) == port && has_transport(g, &all->items[i], transport) &&
            mk__bound_hosts_answers(host, &all->items[i]))
            return true;
    return false;
}

/* Compares host names; case and a trailing dot do not matter. */
static bool is_same_name(struct mk_str a, struct mk_str b)
{
    a.len -= a.len && a.p[a.len - 1] == '.';
    b.len -= b.len && b.p[b.len - 1] == '.';
    return mk_str_ieq(a, b);
}

static MK_COLD bool serves_authority(const struct mk_host *host, struct mk_str authority, uint16_t port,
                                     struct mk_str transport)
{
    struct mk__uri_host_port at;
    if (mk__uri_split_authority(authority, &at) < 0 || !has_port(host, at.has_port ? at.port : port, transport))
        return false;
    for (uint32_t i = 0; i < host->settings->names.n; i++)
        if (is_same_name(host->settings->names.items[i], at.name))
            return true;
    return false;
}

/* Only the transport "liana" is known to be plain HTTP. */
bool mk_host_serves(const struct mk_host *host, struct mk_str authority)
{
    return serves_authority(host, authority, 80, MK_STR("liana"));
}

bool mk_host_serves_https(const struct mk_host *host, struct mk_str authority)
{
    return serves_authority(host, authority, 443, MK_STR("tls"));
}

MK_COLD bool mk_host_asks_certificate(const struct mk_host *host)
{
    const struct mk_generation *g = host->generation;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        const struct mk_transport *transport = MK_PLUGIN_HOOK(g->plugins[i], interfaces, transport);
        if (transport && transport->asks_certificate && transport->asks_certificate(host))
            return true;
    }
    return false;
}

MK_COLD int mk_host_add_folder(struct mk_host *host, const struct mk_host_folder *folder)
{
    struct mk_arena *arena = &host->generation->arena;
    if (host->folders_read)
        return -EALREADY;
    struct mk_host_folder *f = mk_arena_alloc(arena, sizeof(*f));
    if (!f)
        return -ENOMEM;
    *f = *folder;
    f->next = NULL;
    f->url = mk_arena_dup(arena, folder->url.len ? folder->url : MK_STR(""));
    f->path = mk_arena_dup(arena, folder->path);
    if (!f->url.p || !f->path.p)
        return -ENOMEM;
    if (host->last_folder)
        host->last_folder->next = f;
    else
        host->folders = f;
    host->last_folder = f;
    return 0;
}

const struct mk_host_folder *mk_host_folders(struct mk_host *host)
{
    host->folders_read = true;
    return host->folders;
}

struct mk_host *mk_generation_first_host(const struct mk_generation *g)
{
    return g->hosts;
}

struct mk_host *mk_host_next(const struct mk_host *host)
{
    return host->next;
}

struct mk_generation *mk_host_generation(const struct mk_host *host)
{
    return host->generation;
}

const void *mk_generation_conf(const struct mk_generation *g, const struct mk_conf_section *section)
{
    assert(g->set);
    return mk__conf_get(g->set, section);
}

const void *mk_generation_conf_next(const struct mk_generation *g, const struct mk_conf_section *section,
                                    const void *data)
{
    return mk__conf_next(g->set, section, data);
}

void *mk_generation_state(const struct mk_generation *g, const struct mk_plugin *plugin)
{
    int i = mk__generation_find_plugin(g, plugin);
    return i < 0 ? NULL : g->states[i];
}

void *mk_generation_plugin_state(const struct mk_generation *g, const struct mk_plugin *plugin)
{
    int i = mk__generation_find_plugin(g, plugin);
    return i < 0 ? NULL : g->plugin_states[i];
}

const struct mk_file_cache *mk_generation_file_cache(const struct mk_generation *g)
{
    const struct mk_file_cache *cache = NULL;
    for (unsigned i = 0; i < g->n_plugins && !cache; i++)
        cache = MK_PLUGIN_HOOK(g->plugins[i], interfaces, file_cache);
    return cache && (!cache->is_used || cache->is_used(g)) ? cache : NULL;
}

const struct mk_upstreams *mk_generation_upstreams(const struct mk_generation *g)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], interfaces, upstreams))
            return MK_PLUGIN_HOOK(g->plugins[i], interfaces, upstreams);
    return NULL;
}

static bool is_consequence(const struct mk_host *host, const void *data, size_t offset, unsigned nth)
{
    return mk__conf_is_consequence(host->set, data, offset, nth) ||
           mk__conf_is_consequence(host->generation->set, data, offset, nth);
}

bool mk_host_is_wrong(const struct mk_host *host, const void *section_struct, size_t offset)
{
    return is_consequence(host, section_struct, offset, 0);
}

static struct mk__conf_origin find_field(const struct mk_host *host, const void *data, size_t offset, unsigned nth)
{
    struct mk__conf_origin origin = mk__conf_origin(host->set, data, offset, nth);
    return origin.source ? origin : mk__conf_origin(host->generation->set, data, offset, nth);
}

void mk_host_error(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth, const char *format,
                   ...)
{
    va_list args;
    va_start(args, format);
    if (is_consequence(host, section_struct, offset, nth))
        mk__conf_suppress(host->generation->conf);
    else
        mk__conf_report(host->generation->conf, false, find_field(host, section_struct, offset, nth), format, args);
    va_end(args);
}

void mk_host_warn(struct mk_host *host, const void *section_struct, size_t offset, unsigned nth, const char *format,
                  ...)
{
    va_list args;
    va_start(args, format);
    mk__conf_report(host->generation->conf, true, find_field(host, section_struct, offset, nth), format, args);
    va_end(args);
}

void mk_host_conf_origin(const struct mk_host *host, const void *section_struct, struct mk_buf *out)
{
    mk__conf_origin_print(find_field(host, section_struct, MK__CONF_SECTION, 0), out);
}

void mk_host_file(const struct mk_host *host, struct mk_buf *out)
{
    mk__conf_origin_print(mk__conf_origin_file(host->set), out);
}

struct mk__conf_origin mk__host_find_rule(const struct mk_host *host, const void *rule, size_t pattern)
{
    struct mk__conf_origin origin = find_field(host, rule, pattern, 0);
    return origin.source ? origin : find_field(host, rule, MK__CONF_SECTION, 0);
}

/* Returns whether a section is no rule: its pattern is an exact one without text, which no path matches. */
static bool matches_nothing(const void *rule, size_t pattern)
{
    const struct mk_pattern *match = mk__conf_pattern(rule, pattern);
    return match->kind == MK_PATTERN_EXACT && !match->text.len;
}

/* Sections of one kind that are compared with each other. */
struct rule_check {
    const struct mk_host *host;
    const struct mk_conf_section *section;
    size_t pattern;
    bool (*is_conditional)(const void *rule);
};

/* Returns whether a section is a rule whose pattern is known. */
static MK_COLD bool is_rule(const struct rule_check *c, const void *rule)
{
    return !is_consequence(c->host, rule, c->pattern, 0) && !matches_nothing(rule, c->pattern);
}

/* Returns the first rule before this one that matches every path of it; NULL: none does. */
static MK_COLD const void *find_cover(const struct rule_check *c, const void *rule)
{
    const void *r = NULL;
    while ((r = mk_host_conf_next_cover(c->host, c->section, c->pattern, rule, r)))
        if (mk_pattern_covers(mk__conf_pattern(r, c->pattern), mk__conf_pattern(rule, c->pattern)) && is_rule(c, r) &&
            !(c->is_conditional && c->is_conditional(r)))
            break;
    return r;
}

MK_COLD int mk_host_check_rules(struct mk_host *host, const struct mk_conf_section *section, size_t pattern,
                                bool (*is_conditional)(const void *rule))
{
    const struct rule_check check = {host, section, pattern, is_conditional};
    struct mk_buf place;
    int err = 0;
    for (const void *r = mk_host_conf(host, section); r; r = mk_host_conf_next(host, section, r)) {
        if (!mk__conf_is_of(host->set, r) && host != host->generation->hosts)
            break; /* checked for the first host */
        const void *before = is_rule(&check, r) ? find_cover(&check, r) : NULL;
        if (!before)
            continue;
        mk_buf_init(&place, ORIGIN_BYTES);
        mk__conf_origin_print(mk__host_find_rule(host, before, pattern), &place);
        mk__conf_error(host->generation->conf, mk__host_find_rule(host, r, pattern),
                       "this rule can never match: the one of %s comes first and takes every such path",
                       mk_buf_cstr(&place));
        mk_buf_release(&place);
        err = -EINVAL;
    }
    return err;
}

int mk_host_check_patterns(struct mk_host *host, const struct mk_conf_section *section, size_t pattern)
{
    return mk_host_check_rules(host, section, pattern, NULL);
}
