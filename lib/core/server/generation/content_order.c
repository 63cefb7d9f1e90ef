// SPDX-License-Identifier: Apache-2.0
/*
 * Warns of sections that no request gets to (server/generation/content_order.h). Within one
 * section name mk_host_check_rules() does that, as an error.
 */
#include "server/generation/content_order.h"

#include <monkey/hooks.h>
#include <monkey/program.h>

#include <string.h>

enum { TEXT_BYTES = 4096 };

/* A section of a host that answers requests. */
struct place {
    unsigned plugin; /* its index */
    const struct mk_conf_section *section;
    const void *conf;
};

const struct mk_conf_key *mk__content_order_match_key(const struct mk_conf_section *section)
{
    return section->flags & MK_CONF_SERVES ? mk__rule_index_match_key(section) : NULL;
}

static const struct mk_pattern *get_match(const struct place *p)
{
    return mk__conf_pattern(p->conf, mk__content_order_match_key(p->section)->offset);
}

static bool is_shared(const struct mk_host *host, const void *conf)
{
    return !mk__conf_is_of(host->set, conf);
}

/*
 * Tells whether no request for the paths of `later` gets beyond this place. A host may override what is in monkey.conf
 * for all hosts.
 */
static bool takes_all(const struct mk_host *host, const struct place *p, const struct place *later)
{
    const struct mk_plugin *plugin = host->generation->plugins[p->plugin];
    if (!mk_pattern_covers(get_match(p), get_match(later)) ||
        (is_shared(host, later->conf) && !is_shared(host, p->conf)) ||
        mk_host_prefers_files(host, get_match(p), get_match(later)->text))
        return false;
    return p->plugin == later->plugin || plugin->inspection->takes_section(host, p->section, p->conf);
}

/* Finds the first section of a plugin, before `later`, that takes all of its requests. */
static bool find_shadowing_section(const struct mk_host *host, const struct place *later, struct place *at)
{
    const struct mk_plugin *plugin = host->generation->plugins[at->plugin];
    if (!MK_PLUGIN_HOOK(plugin, inspection, takes_section) || host->generation->failed & 1u << at->plugin)
        return false;
    for (at->section = plugin->sections; at->section && at->section->name; at->section++) {
        if (at->section == later->section)
            return false;
        const struct mk_conf_key *key = mk__content_order_match_key(at->section);
        for (at->conf = NULL; key && (at->conf = mk__rule_index_next_cover(host->set, at->section, key->offset,
                                                                           get_match(later), at->conf));)
            if (takes_all(host, at, later))
                return true;
    }
    return false;
}

/* Tells whether a line of [HANDLERS] gives requests to the plugin, which the order does not matter for then. */
static bool has_handler(const struct mk_host *host, unsigned plugin)
{
    uint32_t i = 0;
    while (i < host->handlers.n && host->handlers.items[i].index != plugin)
        i++;
    return i < host->handlers.n;
}

static struct mk__conf_origin find_origin(const struct mk_host *host, const struct place *p)
{
    return mk__host_find_rule(host, p->conf, mk__content_order_match_key(p->section)->offset);
}

static void print_reason(const struct mk_generation *g, const struct place *before, const struct place *later,
                         struct mk_buf *out)
{
    const struct mk_pattern *match = get_match(later);
    const char *name = g->plugins[later->plugin]->name;
    if (before->plugin == later->plugin)
        mk_buf_addf(out, "sections [%s] come before [%s]: give that one a narrower Match", before->section->name,
                    later->section->name);
    else
        mk_buf_addf(out,
                    "the plugin %s comes before %s: give that one a narrower Match, or write \"Match %s%.*s %s\" in "
                    "[HANDLERS]",
                    g->plugins[before->plugin]->name, name, match->kind == MK_PATTERN_EXACT ? "=" : "",
                    MK_STR_ARG(match->text), name);
}

static void warn_of_order(const struct mk_host *host, const struct place *before, const struct place *later)
{
    struct mk_buf place, reason;
    mk_buf_init(&place, TEXT_BYTES);
    mk_buf_init(&reason, TEXT_BYTES);
    mk__conf_origin_print(find_origin(host, before), &place);
    print_reason(host->generation, before, later, &reason);
    mk__conf_warn(host->generation->conf, find_origin(host, later),
                  "no request gets here: %s has a section [%s] with all of these paths, and %s", mk_buf_cstr(&place),
                  before->section->name, mk_buf_cstr(&reason));
    mk_buf_release(&place);
    mk_buf_release(&reason);
}

static void check_place(const struct mk_host *host, const struct place *later)
{
    /* with a handler only the plugin's own sections come before it */
    struct place before = {.plugin = has_handler(host, later->plugin) ? later->plugin : 0};
    if (is_shared(host, later->conf) && host != host->generation->hosts)
        return; /* checked for the first host */
    while (before.plugin <= later->plugin && !find_shadowing_section(host, later, &before))
        before.plugin++;
    if (before.plugin <= later->plugin)
        warn_of_order(host, &before, later);
}

static void check_plugin(const struct mk_host *host, unsigned i)
{
    const struct mk_plugin *plugin = host->generation->plugins[i];
    struct place p = {.plugin = i};
    for (p.section = plugin->sections; p.section && p.section->name; p.section++)
        if (mk__content_order_match_key(p.section))
            for (p.conf = mk_host_conf(host, p.section); p.conf; p.conf = mk_host_conf_next(host, p.section, p.conf))
                check_place(host, &p);
}

void mk__content_order_check(struct mk_generation *g)
{
    for (const struct mk_host *host = g->hosts; host; host = host->next)
        for (unsigned i = 0; i < g->n_plugins; i++)
            if (g->plugins[i]->on_content && !(g->failed & 1u << i))
                check_plugin(host, i);
}
