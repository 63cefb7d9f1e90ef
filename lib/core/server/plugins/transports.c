// SPDX-License-Identifier: Apache-2.0
/*
 * Finds out which transports the plugins need to open connections, and gives them to plugins
 * (server/plugins/transports.h).
 */
#include "server/plugins/transports.h"

#include "server/plugins/autoload.h"
#include "server/plugins/module.h"
#include "server/plugins/plugins.h"

#include <monkey/hooks.h>

#include <errno.h>

struct search {
    struct mk_generation *g;
    const struct mk__generation_source *source;
};

static bool has_section(const struct mk_plugin *plugin, struct mk_str name)
{
    for (const struct mk_conf_section *s = plugin->sections; s && s->name; s++)
        if (mk_str_ieq(mk_str_c(s->name), name))
            return true;
    return false;
}

/* Loads what a plugin needs for a word of this key. */
static void match_word(struct search *s, struct mk_str section, struct mk_str key, struct mk_str word)
{
    for (unsigned i = 0; i < s->g->n_plugins; i++) {
        const struct mk_plugin *plugin = s->g->plugins[i];
        for (const struct mk_plugin_need *need = MK_PLUGIN_HOOK(plugin, interfaces, needs); need && need->transport;
             need++)
            if (mk_str_ieq(key, mk_str_c(need->key)) && mk_str_istarts(word, mk_str_c(need->prefix)) &&
                has_section(plugin, section))
                mk__plugins_add_transport(s->g, s->source, need->transport);
    }
}

/* A mk__conf_line_fn. */
static void match_line(struct mk_str section, struct mk_str name, const struct mk_conf_value *value, void *ctx)
{
    for (uint32_t i = 0; value && i < value->n; i++)
        match_word(ctx, section, name, value->words[i]);
}

static int search_text(struct search *s, struct mk_str text)
{
    struct mk__conf *conf = mk__conf_new();
    int err = conf ? mk__autoload_visit_text(conf, text, match_line, s) : -ENOMEM;
    mk__conf_free(conf);
    return err;
}

/* Files with problems, such as includes without end, are not searched to the end: reading them reports that. */
static int search_files(struct search *s)
{
    struct mk__conf *conf = mk__conf_new();
    const struct mk__autoload_files files = {s->source->dir, s->source->file, mk__plugin_order};
    int err = conf ? mk__autoload_visit_files(conf, &files, match_line, s) : -ENOMEM;
    bool reported = conf && mk__conf_errors(conf);
    mk__conf_free(conf);
    return reported ? 0 : err;
}

static bool has_needs(const struct mk_generation *g)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], interfaces, needs))
            return true;
    return false;
}

int mk__transports_load_needed(struct mk_generation *g, const struct mk__generation_source *source)
{
    struct search s = {g, source};
    const struct mk__program *program = source->program;
    if (!has_needs(g))
        return 0;
    for (unsigned i = 0; i < source->n_overrides; i++)
        match_word(&s, mk_str_c(source->overrides[i].section), mk_str_c(source->overrides[i].key),
                   mk_str_trim(mk_str_c(source->overrides[i].value)));
    if (source->dir)
        return search_files(&s);
    return program && program->text.p ? search_text(&s, program->text) : 0;
}

/* ── for plugins ── */

const struct mk_transport *mk_generation_transport(const struct mk_generation *g, const char *name,
                                                   struct mk_buf *error)
{
    const struct mk_transport *transport = NULL;
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], interfaces, transport) &&
            mk_str_ieq(mk_str_c(g->plugins[i]->name), mk_str_c(name)))
            transport = MK_PLUGIN_HOOK(g->plugins[i], interfaces, transport);
    if (transport && (transport->connect || !transport->open))
        return transport;
    if (transport)
        mk_buf_addf(error, "the plugin %s opens no connections", name);
    else if (mk__module_can_open())
        mk_buf_addf(error, "the plugin %s is missing: it takes the file %s/%s.so", name, mk_plugin_dir(), name);
    else
        mk_buf_addf(error, "the plugin %s is missing in this build", name);
    return NULL;
}
