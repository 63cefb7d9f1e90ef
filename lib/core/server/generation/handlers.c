// SPDX-License-Identifier: Apache-2.0
/*
 * [HANDLERS] (server/generation/handlers.h). If no line matches, on_content of all plugins is called in their order.
 */
#include "server/generation/handlers.h"

#include "conf/suggest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static int parse_match(const struct mk_conf_value *value, void *field, struct mk_arena *arena, struct mk_buf *error)
{
    struct mk__handlers *all = field;
    struct mk__handler one = {.index = 0};
    if (value->n != 2) {
        mk_buf_addf(error,
                    "expected a pattern for paths and the name of a plugin, whose settings are in its own sections");
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

static void check_lines(const struct mk_conf_check *check, void *section)
{
    const size_t match = offsetof(struct mk__handlers, items);
    if (!((struct mk__handlers *)section)->n && !mk_conf_is_wrong(check, match))
        mk_conf_warn(check, match, "this section has no effect without a line \"Match PATTERN PLUGIN\"");
}

const struct mk_conf_section mk__section_handlers = {
    .name = "HANDLERS",
    .scope = MK_CONF_SCOPE_HOST,
    .flags = MK_CONF_REPEAT,
    .size = sizeof(struct mk__handlers),
    .keys = keys,
    .check = check_lines,
    .doc = MK_CONF_DOC(
        "Which plugin alone is asked for the content of some paths; the lines of all sections are one list. Other "
        "paths are offered to all plugins, in the order of `plugins.load`; the first that takes one answers."),
};

static int find_plugin(const struct mk_generation *g, struct mk_str name)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (mk_str_ieq(mk_str_c(g->plugins[i]->name), name))
            return (int)i;
    return -ENOENT;
}

/* A line: the `nth` of a section. */
struct line_place {
    struct mk_host *host;
    const struct mk__handlers *section;
    uint32_t nth;
};

static void report_line(const struct line_place *at, const char *what)
{
    assert(at->nth < at->section->n);
    mk_host_error(at->host, at->section, offsetof(struct mk__handlers, items), at->nth, "the plugin \"%.*s\" %s",
                  MK_STR_ARG(at->section->items[at->nth].plugin), what);
}

/* Reports a plugin that is not loaded, with the loaded one that was probably meant. */
static void report_missing(const struct mk_generation *g, const struct line_place *at)
{
    struct mk__suggestion suggestion = mk__suggest_init(at->section->items[at->nth].plugin);
    char what[128] = "is not loaded";
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_content)
            mk__suggest_add(&suggestion, g->plugins[i]->name);
    if (suggestion.name)
        snprintf(what, sizeof(what), "is not loaded" MK__SUGGEST_PHRASE "\"%s\"?", suggestion.name);
    if (!suggestion.name && g->plugins_missing)
        mk__conf_suppress(g->conf);
    else
        report_line(at, what);
}

/* Reports a line that can never match, because one of `all` from the index `first` on matches every path of it. */
static void report_covered(const struct line_place *at, const struct mk__handlers *all, uint32_t first)
{
    for (uint32_t i = first; i < all->n; i++) {
        if (!mk_pattern_covers(&all->items[i].match, &at->section->items[at->nth].match))
            continue;
        mk_host_error(at->host, at->section, offsetof(struct mk__handlers, items), at->nth,
                      "this line can never match: the one for %.*s comes first and takes every such path",
                      MK_STR_ARG(all->items[i].match.text));
        return;
    }
}

static int add_line(struct mk_generation *g, const struct line_place *at, struct mk__handlers *all)
{
    struct mk__handler one = at->section->items[at->nth];
    int index = find_plugin(g, one.plugin);
    if (index < 0)
        report_missing(g, at);
    else if (!g->plugins[index]->on_content)
        report_line(at, "has no content to answer with");
    else
        one.index = (unsigned)index;
    struct mk__handler *items = mk_arena_grow(&g->arena, all->items, all->n, sizeof(*items));
    if (!items)
        return -ENOMEM;
    items[all->n] = one;
    *all = (struct mk__handlers){items, all->n + 1};
    return 0;
}

MK_COLD int mk__handlers_resolve(struct mk_generation *g, struct mk_host *host)
{
    const struct mk__handlers *shared = mk_host_server_conf(host, &mk__section_handlers);
    struct mk__handlers all = {NULL, 0};
    uint32_t first = 0; /* a host may override all lines of monkey.conf */
    int err = 0;
    for (const struct mk__handlers *s = mk_host_conf(host, &mk__section_handlers); s;
         s = mk_host_conf_next(host, &mk__section_handlers, s)) {
        first = s == shared ? all.n : first;
        for (struct line_place at = {host, s, 0}; at.nth < s->n && err == 0; at.nth++) {
            report_covered(&at, &all, first);
            err = add_line(g, &at, &all);
        }
    }
    host->handlers = all;
    return err;
}

int mk__handlers_find(const struct mk_host *host, struct mk_str path, const struct mk__handler **ret_handler)
{
    int match = 0;
    uint32_t i = 0;
    while (i < host->handlers.n && (match = mk_pattern_match(&host->handlers.items[i].match, path)) == 0)
        i++;
    *ret_handler = match > 0 ? &host->handlers.items[i] : NULL;
    assert(match <= 0 || (*ret_handler)->index < MK__PLUGINS_MAX);
    return match < 0 ? match : 0;
}
