// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses the plugins of a generation (server/plugins/plugins.h): built-in ones and modules, by plugins.load or by the
 * words of the configuration. Declares their sections, and starts and stops them.
 */
#include "server/plugins/plugins.h"

#include "base/file.h"
#include "conf/suggest.h"
#include "server/generation/handlers.h"
#include "server/plugins/module.h"
#include "server/generation/path_limits.h"
#include "server/plugins/load_order.h"
#include "server/plugins/autoload.h"
#include "server/generation/spools.h"

#include <monkey/hooks.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { PATH_BYTES = 4096 };

static const struct mk_conf_section *const core_sections[] = {
    &mk__section_server,   &mk__section_host,   &mk__section_mimetypes, &mk__section_http2,
    &mk__section_handlers, &mk__section_limits, &mk__section_spool,
};

/* ── declaring ── */

static int declare_plugin(struct mk__conf *conf, const struct mk_plugin *plugin, bool loaded)
{
    int err = 0;
    for (const struct mk_conf_section *s = plugin->sections; s && s->name && err == 0; s++)
        err = loaded ? mk__conf_declare(conf, s, plugin->name) : mk__conf_declare_absent(conf, s, plugin->name);
    return err;
}

static int declare_core(struct mk__conf *conf)
{
    int err = 0;
    for (unsigned i = 0; i < MK_COUNT_OF(core_sections) && err == 0; i++)
        err = mk__conf_declare(conf, core_sections[i], NULL);
    return err;
}

static void declare_module(const struct mk_plugin *plugin, void *ctx)
{
    declare_plugin(ctx, plugin, true); /* -EEXIST (the same section as another plugin's) leaves it out */
}

int mk__plugins_declare_all(struct mk__conf *conf)
{
    int err = declare_core(conf);
    if (err == 0)
        err = mk__conf_declare(conf, &mk__section_plugins, NULL);
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p && err == 0; p++)
        err = declare_plugin(conf, *p, true);
    if (err == 0)
        mk__module_each(NULL, declare_module, conf);
    return err;
}

static bool is_loaded(const struct mk_generation *g, const char *name)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (mk_str_ieq(mk_str_c(g->plugins[i]->name), mk_str_c(name)))
            return true;
    return false;
}

static void declare_absent(const struct mk_plugin *plugin, void *ctx)
{
    const struct mk_generation *g = ctx;
    if (!is_loaded(g, plugin->name))
        declare_plugin(g->conf, plugin, false);
}

/* Called at the first unknown name only: modules that are not loaded are opened to find out whose it is. */
static void declare_absent_modules(struct mk__conf *conf, void *ctx)
{
    struct mk_generation *g = ctx;
    (void)conf;
    mk__module_each(&g->module_list, declare_absent, g);
}

void mk__plugins_describe_place(const char *name, struct mk_buf *out, void *generation)
{
    const struct mk_generation *g = generation;
    mk__load_order_describe(mk__conf_first_text(g->load_conf), mk__plugin_order, name, out);
}

int mk__plugins_declare(struct mk_generation *g)
{
    int err = declare_core(g->conf);
    for (unsigned i = 0; i < g->n_plugins && err == 0; i++)
        err = declare_plugin(g->conf, g->plugins[i], true);
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p && err == 0; p++)
        if (!is_loaded(g, (*p)->name))
            err = declare_plugin(g->conf, *p, false);
    mk__conf_on_unknown(g->conf, declare_absent_modules, g);
    if (g->load_conf)
        mk__conf_on_absent(g->conf, mk__plugins_describe_place);
    return err;
}

/* ── plugins.load ── */

/* "name" is a module of mk_plugin_dir(); with a slash it is a path, relative to the directory of plugins.load. */
static void get_module_path(const struct mk__generation_source *source, struct mk_str name, char *ret_path, size_t size)
{
    if (name.p[0] == '/')
        snprintf(ret_path, size, "%.*s", MK_STR_ARG(name));
    else if (memchr(name.p, '/', name.len))
        snprintf(ret_path, size, "%s/%.*s", source->dir, MK_STR_ARG(name));
    else
        snprintf(ret_path, size, "%s/%.*s.so", mk_plugin_dir(), MK_STR_ARG(name));
}

/* `n`: where the plugin is in the list, or would be. */
static void close_module(struct mk_generation *g, unsigned n, const struct mk_plugin *plugin)
{
    assert(n < MK__PLUGINS_MAX);
    if (g->modules[n])
        mk__module_close(g->modules[n], plugin);
    g->modules[n] = NULL;
}

static void offer_plugin(const struct mk_plugin *plugin, void *ctx)
{
    mk__suggest_add(ctx, plugin->name);
}

/* Returns the name in a line of the original server, "/usr/lib/monkey/monkey-NAME.so". */
static struct mk_str get_former_name(struct mk_str text)
{
    const size_t before = strlen("monkey-"), after = strlen(".so");
    const char *slash = memrchr(text.p, '/', text.len);
    struct mk_str name = slash ? mk_str(slash + 1, text.len - (size_t)(slash + 1 - text.p)) : text;
    if (name.len <= before + after || !mk_str_starts(name, MK_STR("monkey-")) ||
        memcmp(name.p + name.len - after, ".so", after) != 0)
        return text;
    return mk_str(name.p + before, name.len - before - after);
}

/* Returns the plugin that does what one of the original server did under another name; or NULL. */
static const char *find_successor(struct mk_str name)
{
    static const char *const names[][2] = {{"mbedtls", "tls"},  {"palm", "fastcgi"},  {"patas", "proxy"},
                                           {"polarssl", "tls"}, {"liana_ssl", "tls"}, {"proxy_reverse", "proxy"},
                                           {NULL, NULL}};
    unsigned i = 0;
    while (names[i][0] && !mk_str_ieq(name, mk_str_c(names[i][0])))
        i++;
    return names[i][1];
}

/* Returns the plugin that was probably meant, among those of the build and the installed modules; or NULL. */
static const char *suggest_plugin(struct mk_generation *g, struct mk_str text)
{
    struct mk_str name = get_former_name(text);
    struct mk__suggestion suggestion = mk__suggest_init(name);
    suggestion.name = find_successor(name);
    if (suggestion.name)
        return suggestion.name;
    for (const char *const *known = mk__plugin_order; *known; known++) {
        if (mk_str_ieq(text, mk_str_c(*known)))
            return NULL; /* spelt correctly: its file is missing */
        mk__suggest_add(&suggestion, *known);
    }
    if (!suggestion.name)
        mk__module_each(&g->module_list, offer_plugin, &suggestion);
    return suggestion.name;
}

static void report_unknown_plugin(struct mk_generation *g, struct mk__conf_origin origin, struct mk_str name,
                                  const char *path)
{
    const char *meant = suggest_plugin(g, name);
    char place[PATH_BYTES + 32] = " in this build";
    if (memchr(name.p, '/', name.len))
        place[0] = '\0';
    else if (path)
        snprintf(place, sizeof(place), ", neither in this build nor as %s", path);
    if (meant)
        mk__conf_error(g->load_conf, origin, "there is no plugin \"%.*s\"%s" MK__SUGGEST_PHRASE "\"%s\"?",
                       MK_STR_ARG(name), place, meant);
    else
        mk__conf_error(g->load_conf, origin, "there is no plugin \"%.*s\"%s; `monkey -b` lists them", MK_STR_ARG(name),
                       place);
}

static const struct mk_plugin *open_module(struct mk_generation *g, const char *path, struct mk__conf_origin origin)
{
    const struct mk_plugin *plugin = NULL;
    MK_BUF_ON_STACK(error, 512);
    assert(g->n_plugins < MK__PLUGINS_MAX);
    if (mk__module_open(path, &g->modules[g->n_plugins], &plugin, &error) < 0)
        mk__conf_error(g->load_conf ? g->load_conf : g->conf, origin, "the plugin %s cannot be loaded: %s", path,
                       mk_buf_cstr(&error));
    return plugin;
}

/* Returns the built-in plugin of that name, else the module; NULL with a message: there is none. */
static const struct mk_plugin *find_plugin(struct mk_generation *g, const struct mk__generation_source *source,
                                           struct mk_str name, struct mk__conf_origin origin)
{
    char path[PATH_BYTES];
    const struct mk_plugin *plugin = mk__module_find_builtin(name);
    get_module_path(source, name, path, sizeof(path));
    if (plugin)
        return plugin;
    bool is_path = memchr(name.p, '/', name.len);
    if (mk__file_exists(path) || (is_path && get_former_name(name).p == name.p))
        return open_module(g, path, origin);
    report_unknown_plugin(g, origin, name, mk__module_can_open() ? path : NULL);
    return NULL;
}

/* Reports plugins that do not work in front of this one. */
static void check_place(struct mk_generation *g, const struct mk_plugin *plugin, struct mk__conf_origin origin)
{
    for (unsigned i = 0; i < g->n_plugins; i++) {
        const struct mk__load_order_fault *fault = mk__load_order_check(plugin->name, g->plugins[i]->name);
        if (fault && fault->is_error)
            mk__conf_error(g->load_conf, origin, "the plugin \"%s\" must come before \"%s\": %s", fault->name,
                           fault->before, fault->consequence);
        else if (fault)
            mk__conf_warn(g->load_conf, origin, "the plugin \"%s\" should come before \"%s\": %s", fault->name,
                          fault->before, fault->consequence);
    }
}

/* A transport with on_request checks the connection, which must come before other plugins answer. */
static void check_order(struct mk_generation *g, const struct mk_plugin *plugin, struct mk__conf_origin origin)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (g->plugins[i]->on_request)
            mk__conf_error(g->load_conf, origin, "the plugin \"%s\" must come before \"%s\"", plugin->name,
                           g->plugins[i]->name);
}

static void load_plugin(struct mk_generation *g, const struct mk__generation_source *source, struct mk_str name,
                        struct mk__conf_origin origin)
{
    if (g->n_plugins == MK__PLUGINS_MAX) {
        mk__conf_error(g->load_conf, origin, "more than %d plugins", MK__PLUGINS_MAX);
        return;
    }
    const struct mk_plugin *plugin = find_plugin(g, source, name, origin);
    g->plugins_missing |= !plugin;
    if (!plugin)
        return;
    if (MK_PLUGIN_HOOK(plugin, interfaces, transport) && plugin->on_request)
        check_order(g, plugin, origin);
    check_place(g, plugin, origin);
    if (!is_loaded(g, plugin->name)) {
        g->plugins[g->n_plugins++] = plugin;
        return;
    }
    mk__conf_error(g->load_conf, origin, "the plugin \"%s\" is loaded already", plugin->name);
    close_module(g, g->n_plugins, plugin);
}

static bool is_in_order(const char *name)
{
    for (const char *const *known = mk__plugin_order; *known; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}

static void load_module(struct mk_generation *g, const struct mk__generation_source *source, const char *name)
{
    struct mk_str word = mk_str_c(name);
    char path[PATH_BYTES];
    get_module_path(source, word, path, sizeof(path));
    if (!mk__file_exists(path))
        return; /* not installed: its sections and keys are reported as unknown */
    const struct mk_plugin *plugin = open_module(g, path, (struct mk__conf_origin){0});
    if (plugin)
        g->plugins[g->n_plugins++] = plugin;
}

/* Keeps the problems of the files, such as includes without end, if the memory of a configuration does not suffice. */
static int find_modules(struct mk_generation *g, const struct mk__generation_source *source, uint32_t *ret_wanted)
{
    struct mk__conf *conf = mk__conf_new();
    const struct mk__autoload_files files = {source->dir, source->file, mk__plugin_order};
    int err = conf ? mk__autoload_find_modules(conf, &files, ret_wanted) : -ENOMEM;
    if (err < 0)
        g->load_conf = conf;
    else
        mk__conf_free(conf);
    return err;
}

/* Finds the modules that the text of the program mentions. Returns 0 or -ENOMEM. */
static int search_program(const struct mk__program *program, uint32_t *ret_wanted)
{
    if (!program->text.p)
        return 0;
    struct mk__conf *conf = mk__conf_new();
    int err = conf ? mk__autoload_find_in_text(conf, program->text, mk__plugin_order, ret_wanted) : -ENOMEM;
    mk__conf_free(conf);
    return err;
}

/* Returns whether a server without a folder of files does without the plugin, which would ask for one. */
static bool is_left_out(const struct mk__generation_source *source, const char *name, bool wanted)
{
    return !source->dir && !source->root && !wanted && strcmp(name, "static") == 0;
}

/* Without plugins.load: loads the built-in plugins, and the modules that the configuration mentions. */
static int load_defaults(struct mk_generation *g, const struct mk__generation_source *source)
{
    uint32_t wanted = 0;
    int err = source->dir ? find_modules(g, source, &wanted) : 0;
    if (err == 0 && source->program && !source->dir)
        err = search_program(source->program, &wanted);
    for (unsigned i = 0; i < source->n_overrides; i++)
        if (strcmp(source->overrides[i].key, "TransportLayer") == 0)
            wanted |= mk__autoload_match_word(mk_str_trim(mk_str_c(source->overrides[i].value)), mk__plugin_order);
        else if (source->overrides[i].of_plugin)
            wanted |= mk__autoload_match_word(mk_str_c(source->overrides[i].section), mk__plugin_order);
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p; p++)
        if (!is_in_order((*p)->name))
            g->plugins[g->n_plugins++] = *p;
    for (unsigned i = 0; mk__plugin_order[i]; i++) {
        const struct mk_plugin *plugin = mk__module_find_builtin(mk_str_c(mk__plugin_order[i]));
        if (plugin && !is_left_out(source, plugin->name, wanted & 1u << i))
            g->plugins[g->n_plugins++] = plugin;
        else if (!plugin && wanted & 1u << i)
            load_module(g, source, mk__plugin_order[i]);
    }
    return err;
}

static void report_program_plugins(struct mk_generation *g, const struct mk__program *program)
{
    for (unsigned i = 0; i < program->n_plugins; i++)
        if (is_loaded(g, program->plugins[i]->name))
            mk__conf_error(g->conf, (struct mk__conf_origin){0},
                           "the plugin \"%s\" of the program has the name of another one", program->plugins[i]->name);
}

/* Makes room for `n` plugins after the transports. Returns the index of the first one. */
static unsigned make_room(struct mk_generation *g, unsigned n)
{
    unsigned at = 0;
    assert(g->n_plugins + n <= MK__PLUGINS_MAX);
    while (at < g->n_plugins && MK_PLUGIN_HOOK(g->plugins[at], interfaces, transport))
        at++;
    memmove(g->plugins + at + n, g->plugins + at, (g->n_plugins - at) * sizeof(g->plugins[0]));
    memmove(g->modules + at + n, g->modules + at, (g->n_plugins - at) * sizeof(g->modules[0]));
    g->n_plugins += n;
    return at;
}

/* Inserts the plugins of the program after the transports: they are asked before others, and need no name in a file.
 */
static void insert_program_plugins(struct mk_generation *g, const struct mk__program *program)
{
    unsigned n = program->n_plugins;
    if (g->n_plugins + n > MK__PLUGINS_MAX) {
        mk__conf_error(g->conf, (struct mk__conf_origin){0}, "more than %d plugins", MK__PLUGINS_MAX);
        return;
    }
    report_program_plugins(g, program);
    unsigned at = make_room(g, n);
    for (unsigned i = 0; i < n; i++) {
        g->plugins[at + i] = program->plugins[i];
        g->modules[at + i] = NULL;
    }
}

void mk__plugins_add_transport(struct mk_generation *g, const struct mk__generation_source *source, const char *name)
{
    char path[PATH_BYTES];
    const struct mk_plugin *plugin = mk__module_find_builtin(mk_str_c(name));
    struct mk__conf *conf = g->load_conf ? g->load_conf : g->conf;
    if (is_loaded(g, name))
        return;
    if (g->n_plugins == MK__PLUGINS_MAX) {
        mk__conf_error(conf, (struct mk__conf_origin){0}, "more than %d plugins", MK__PLUGINS_MAX);
        return;
    }
    get_module_path(source, mk_str_c(name), path, sizeof(path));
    if (!plugin && mk__file_exists(path))
        plugin = open_module(g, path, (struct mk__conf_origin){0});
    if (!plugin)
        return; /* the plugin that needs it reports that */
    struct mk__module *module = g->modules[g->n_plugins];
    unsigned at = make_room(g, 1);
    g->plugins[at] = plugin;
    g->modules[at] = module;
}

static int read_plugins(struct mk_generation *g, const struct mk__generation_source *source)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/plugins.load", source->dir ? source->dir : "");
    if (!source->dir || source->file || !mk__file_exists(path))
        return load_defaults(g, source);
    g->load_conf = mk__conf_new();
    if (!g->load_conf || mk__conf_declare(g->load_conf, &mk__section_plugins, NULL) < 0)
        return -ENOMEM;
    struct mk__conf_set *set = mk__conf_set_new(g->load_conf, MK_CONF_SCOPE_SERVER);
    if (!set)
        return -ENOMEM;
    int err = mk__conf_read(g->load_conf, set, path);
    g->plugins_missing = mk__conf_errors(g->load_conf) > 0; /* a line with an error may have named one */
    const struct mk__plugin_list *list = mk__conf_get(set, &mk__section_plugins);
    for (uint32_t i = 0; list && i < list->load.n; i++)
        load_plugin(g, source, list->load.items[i],
                    mk__conf_origin(set, list, offsetof(struct mk__plugin_list, load), i));
    if (g->plugins_missing)
        mk__conf_set_plugins_missing(g->conf);
    return err == -ENOMEM ? err : 0;
}

/* plugins.load is read first: it decides which sections the other files may have. */
int mk__plugins_read(struct mk_generation *g, const struct mk__generation_source *source)
{
    int err = read_plugins(g, source);
    if (err == 0 && source->program)
        insert_program_plugins(g, source->program);
    return err;
}

/* ── starting and stopping ── */

static void report_start_error(struct mk_generation *g, unsigned i, int err, unsigned before)
{
    assert(i < g->n_plugins && err < 0);
    g->failed |= 1u << i;
    if (mk__conf_all_errors(g->conf) == before) /* else the plugin has reported an error */
        mk__conf_error(g->conf, (struct mk__conf_origin){0}, "the plugin \"%s\" cannot start: %s", g->plugins[i]->name,
                       strerror(-err));
}

static int start_plugin(struct mk_generation *g, unsigned i)
{
    assert(i < g->n_plugins);
    const struct mk_plugin *plugin = g->plugins[i];
    unsigned before = mk__conf_all_errors(g->conf);
    int err = mk__module_use_plugin(plugin, &g->plugin_states[i]);
    if (err == 0) {
        g->used |= 1u << i;
        err = plugin->generation_start ? plugin->generation_start(g, &g->states[i]) : 0;
    }
    if (err == 0)
        g->started |= 1u << i;
    else
        report_start_error(g, i, err, before);
    return err == -ENOMEM ? err : 0;
}

int mk__plugins_start(struct mk_generation *g)
{
    int err = 0;
    for (unsigned i = 0; i < g->n_plugins && err == 0; i++)
        err = start_plugin(g, i);
    return err;
}

int mk__plugins_check(struct mk_generation *g)
{
    int err = 0;
    for (unsigned i = 0; i < g->n_plugins && err != -ENOMEM; i++) {
        const struct mk_plugin *plugin = g->plugins[i];
        unsigned before = mk__conf_all_errors(g->conf);
        if (!plugin->generation_check || !(g->started & 1u << i) || g->failed & 1u << i)
            continue;
        err = plugin->generation_check(g, g->states[i]);
        if (err < 0)
            report_start_error(g, i, err, before);
    }
    return err == -ENOMEM ? err : 0;
}

void mk__plugins_stop(struct mk_generation *g)
{
    for (unsigned i = g->n_plugins; i-- > 0;)
        if (g->started & 1u << i && g->plugins[i]->generation_stop)
            g->plugins[i]->generation_stop(g, g->states[i]);
    for (unsigned i = g->n_plugins; i-- > 0;)
        if (g->used & 1u << i)
            mk__module_release_plugin(g->plugins[i]);
}

void mk__plugins_close(struct mk_generation *g)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        close_module(g, i, g->plugins[i]);
}
