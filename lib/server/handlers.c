// SPDX-License-Identifier: Apache-2.0
/*
 * [HANDLERS] (server/handlers.h). If no line matches, on_content of all plugins is called in their order.
 */
#include "server/handlers.h"

#include "conf/suggest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static int parse_match(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk__handlers *all = field;
    struct mk__handler one = {.index = 0};
    if (value->n != 2) {
        mk_buf_addf(error, "expected a pattern for paths and the name of a plugin");
        return -EINVAL;
    }
    struct mk_conf_value pattern = *value;
    pattern.text = value->words[0]; /* the value begins with it, so that an error has the right column */
    pattern.n = 1;
    int err = mk_conf_pattern(&pattern, &one.match, arena, error);
    if (err < 0)
        return err;
    one.plugin = mk_arena_dup(arena, value->words[1]);
    struct mk__handler *items = mk_arena_grow(arena, all->items, all->n, sizeof(*items));
    if (!one.plugin.p || !items)
        return -ENOMEM;
    items[all->n] = one;
    *all = (struct mk__handlers){items, all->n + 1};
    return 0;
}

static const struct mk_conf_key keys[] = {
    MK_CONF_KEY_CUSTOM(struct mk__handlers, items, "Match", NULL,
                       "Paths (`=/exact`, `/prefix`, a glob such as `*.php`, an expression `~^/api/v[12]/`) and the "
                       "name of the plugin that answers for "
                       "them. The first line that matches a path counts.",
                       .flags = MK_CONF_REPEAT, .unit = "pattern plugin", .parse = parse_match),
    {0},
};

const struct mk_conf_section mk__section_handlers = {
    .name = "HANDLERS",
    .scope = MK_CONF_SCOPE_HOST,
    .size = sizeof(struct mk__handlers),
    .keys = keys,
    .doc = MK_CONF_DOC(
        "Which plugin alone is asked for the content of some paths. Other paths are offered to all plugins, "
        "in the order of `plugins.load`; the first that takes one answers."),
};

static int find_plugin(const struct mk_generation *g, struct mk_str name)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (mk_str_ieq(mk_str_c(g->plugins[i]->name), name))
            return (int)i;
    return -ENOENT;
}

static const struct mk__handlers *get_rules(const struct mk_host *host)
{
    return mk__conf_get(host->set, &mk__section_handlers);
}

static struct mk__conf_origin get_rule_origin(const struct mk_host *host, uint32_t nth)
{
    return mk__conf_origin(host->set, get_rules(host), offsetof(struct mk__handlers, items), nth);
}

static void report_rule(struct mk_generation *g, const struct mk_host *host, uint32_t nth, const char *what)
{
    assert(nth < get_rules(host)->n);
    mk__conf_error(g->conf, get_rule_origin(host, nth), "the plugin \"%.*s\" %s",
                   MK_STR_ARG(get_rules(host)->items[nth].plugin), what);
}

/* Reports a plugin that is not loaded, with the loaded one that was probably meant. */
static void report_missing(struct mk_generation *g, const struct mk_host *host, uint32_t nth)
{
    struct mk_str name = get_rules(host)->items[nth].plugin;
    struct mk__suggestion suggestion = mk__suggest_init(name);
    char what[128] = "is not loaded";
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_content)
            mk__suggest_add(&suggestion, g->plugins[i]->name);
    if (suggestion.name)
        snprintf(what, sizeof(what), "is not loaded" MK__SUGGEST_PHRASE "\"%s\"?", suggestion.name);
    if (!suggestion.name && g->plugins_missing)
        mk__conf_suppress(g->conf);
    else
        report_rule(g, host, nth, what);
}

/* Reports a line that can never match, because an earlier one matches every path of it. */
static void report_covered(struct mk_generation *g, const struct mk_host *host, uint32_t nth)
{
    const struct mk__handlers *rules = get_rules(host);
    for (uint32_t i = 0; i < nth; i++) {
        if (!mk_pattern_covers(&rules->items[i].match, &rules->items[nth].match))
            continue;
        mk__conf_error(g->conf, get_rule_origin(host, nth),
                       "this line can never match: the one for %.*s comes first and takes every such path",
                       MK_STR_ARG(rules->items[i].match.text));
        return;
    }
}

void mk__handlers_resolve(struct mk_generation *g, struct mk_host *host)
{
    const struct mk__handlers *rules = get_rules(host);
    for (uint32_t i = 0; rules && i < rules->n; i++) {
        report_covered(g, host, i);
        int index = find_plugin(g, rules->items[i].plugin);
        if (index < 0)
            report_missing(g, host, i);
        else if (!g->plugins[index]->on_content)
            report_rule(g, host, i, "has no content to answer with");
        else
            rules->items[i].index = (unsigned)index;
    }
    host->handlers = rules && rules->n ? rules : NULL;
}

int mk__handlers_find(const struct mk_host *host, struct mk_str path, const struct mk__handler **ret_handler)
{
    int match = 0;
    uint32_t i = 0, n = host->handlers ? host->handlers->n : 0;
    while (i < n && (match = mk_pattern_match(&host->handlers->items[i].match, path)) == 0)
        i++;
    *ret_handler = match > 0 ? &host->handlers->items[i] : NULL;
    assert(match <= 0 || (*ret_handler)->index < MK__PLUGINS_MAX);
    return match < 0 ? match : 0;
}
