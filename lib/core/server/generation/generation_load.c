// SPDX-License-Identifier: Apache-2.0
/*
 * Loads a configuration (server/generation/generation_load.h): reads the files in their order, and makes hosts and
 * plugins of them. The tables of keys (settings.c and the plugins) define what the files may say; lib/core/conf reads
 * them.
 */
#include "server/generation/generation_load.h"

#include "base/file.h"
#include "conf/suggest.h"
#include "http/h2/h2.h"
#include "server/generation/bound_hosts.h"
#include "server/counts.h"
#include "server/hooks/conn_hooks.h"
#include "server/generation/content_order.h"
#include "server/worker/cpus.h"
#include "server/generation/handlers.h"
#include "server/plugins/module.h"
#include "server/generation/path_limits.h"
#include "server/plugins/plugins.h"
#include "server/generation/process_keys.h"
#include "conf/skipped_files.h"
#include "server/generation/spools.h"
#include "server/plugins/transports.h"
#include "server/generation/unread_files.h"

#include <monkey/hooks.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { GENERATION_BYTES_MAX = 64 * 1024 * 1024, PATH_BYTES = 4096 };

/* ── the server's files ── */

/* Returns whether a loaded plugin has this key in a section of that scope. */
static bool has_plugin_key(const struct mk_generation *g, const struct mk__override *o, enum mk_conf_scope scope)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        for (const struct mk_conf_section *s = g->plugins[i]->sections; s && s->name; s++)
            for (const struct mk_conf_key *key = s->keys; key && key->name; key++)
                if (s->scope == scope && strcmp(s->name, o->section) == 0 && strcmp(key->name, o->key) == 0)
                    return true;
    return false;
}

static void apply_overrides(struct mk_generation *g, struct mk__conf_set *set, enum mk_conf_scope scope,
                            const struct mk__generation_source *source)
{
    for (unsigned i = 0; i < source->n_overrides; i++) {
        const struct mk__override *o = &source->overrides[i];
        bool host = mk_str_ieq(mk_str_c(o->section), MK_STR("HOST"));
        if (o->of_plugin ? has_plugin_key(g, o, scope) : host == (scope == MK_CONF_SCOPE_HOST))
            mk__conf_override(g->conf, set, o->section, o->key, mk_str_c(o->value), o->origin);
    }
}

static void read_if_exists(struct mk_generation *g, const char *path)
{
    if (!mk__file_is_missing(path))
        mk__conf_read(g->conf, g->set, path);
}

static void read_server_files(struct mk_generation *g, const char *dir)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/monkey.conf", dir);
    mk__conf_read(g->conf, g->set, path);
    snprintf(path, sizeof(path), "%s/monkey.mime", dir);
    read_if_exists(g, path);
    for (unsigned i = 0; i < g->n_plugins; i++) {
        const char *name = g->plugins[i]->name;
        snprintf(path, sizeof(path), "%s/plugins/%s/%s.conf", dir, name, name);
        read_if_exists(g, path);
    }
    mk__unread_files_warn(g, dir);
}

static int make_mime(struct mk_generation *g)
{
    const struct mk_conf_pairs *pairs = mk__conf_get(g->set, &mk__section_mimetypes);
    unsigned n = pairs ? pairs->n : 0;
    struct mk__mime_pair *list = mk_arena_alloc(&g->arena, (n + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        list[i] = (struct mk__mime_pair){pairs->items[i].key, pairs->items[i].value};
    return mk__mime_overlay_init(&g->mime, &g->arena, list, n, g->settings->default_type);
}

static const struct mk_transport *find_transport(const struct mk_generation *g, struct mk_str name)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], interfaces, transport) && mk_str_ieq(mk_str_c(g->plugins[i]->name), name))
            return MK_PLUGIN_HOOK(g->plugins[i], interfaces, transport);
    return NULL;
}

static void offer_transport(const struct mk_plugin *plugin, void *ctx)
{
    if (MK_PLUGIN_HOOK(plugin, interfaces, transport))
        mk__suggest_add(ctx, plugin->name);
}

/* Returns the transport that was probably meant, also one in a module that is not loaded; or NULL. */
static const char *suggest_transport(struct mk_generation *g, struct mk_str name)
{
    struct mk__suggestion suggestion = mk__suggest_init(name);
    if (mk_str_ieq(name, MK_STR("ssl")) || mk_str_ieq(name, MK_STR("https")))
        return "tls";
    for (unsigned i = 0; i < g->n_plugins; i++)
        offer_transport(g->plugins[i], &suggestion);
    if (!suggestion.name)
        mk__module_each(&g->module_list, offer_transport, &suggestion);
    return suggestion.name;
}

/* Returns what the configuration needs for this transport, or the name that was probably meant. */
static const char *describe_fix(struct mk_generation *g, struct mk_str name, char *text, size_t size)
{
    struct mk_buf cure;
    const char *meant = suggest_transport(g, name);
    mk_buf_init_fixed(&cure, text, size);
    if (meant && !mk_str_ieq(name, mk_str_c(meant))) {
        mk_buf_addf(&cure, MK__SUGGEST_PHRASE "\"%s\"?", meant);
        return mk_buf_cstr(&cure);
    }
    if (g->load_conf)
        mk_buf_addf(&cure, ": it takes \"Load %.*s\" in plugins.load", MK_STR_ARG(name));
    if (g->load_conf && meant)
        mk__plugins_describe_place(meant, &cure, (void *)(uintptr_t)g);
    if (mk__module_can_open() && !mk__module_find_builtin(name))
        mk_buf_addf(&cure, "%s the file %s/%.*s.so", cure.len ? " and" : ": it takes", mk_plugin_dir(),
                    MK_STR_ARG(name));
    return mk_buf_cstr(&cure);
}

/* `what` begins the message: the word could have been an option. */
static void report_unknown_transport(struct mk_generation *g, struct mk_str name, size_t offset, uint32_t nth,
                                     const char *what)
{
    char text[512];
    if (g->plugins_missing || mk__conf_is_consequence(g->set, g->settings, offset, nth)) {
        mk__conf_suppress(g->conf);
        return;
    }
    mk__conf_error(g->conf, mk__conf_origin(g->set, g->settings, offset, nth),
                   "%sno loaded plugin \"%.*s\" can carry connections%s", what, MK_STR_ARG(name),
                   describe_fix(g, name, text, sizeof(text)));
}

static void find_listen_modes(struct mk_generation *g)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++) {
        struct mk__listen_conf *one = &g->settings->listen.items[i];
        one->mode.transport = one->transport.len ? find_transport(g, one->transport) : g->transport;
        if (!one->mode.transport && one->transport.len)
            report_unknown_transport(g, one->transport, offsetof(struct mk__settings, listen),
                                     mk__settings_listen_line(g->settings, i), "there is no option but proxy, and ");
    }
}

static void find_transports(struct mk_generation *g)
{
    struct mk_str name = g->settings->transport;
    g->transport = find_transport(g, name);
    if (!g->transport)
        report_unknown_transport(g, name, offsetof(struct mk__settings, transport), 0, "");
    find_listen_modes(g);
}

/* Returns whether the later address has the earlier one, and not the other way round. */
static bool is_wider(const struct mk__addr *later, const struct mk__addr *first)
{
    if (later->any || first->any)
        return later->any && !first->any;
    return later->sa.sa_family != AF_UNIX && mk__addr_is_unspecified(later) && !mk__addr_is_unspecified(first);
}

/* Reports two listeners at the line of the one that is not needed. */
static void report_listen_conflict(struct mk_generation *g, uint32_t later, uint32_t first)
{
    const struct mk__listen_conf *all = g->settings->listen.items;
    bool swapped = is_wider(&all[later].addr, &all[first].addr);
    uint32_t narrow = swapped ? first : later, wide = swapped ? later : first;
    mk__conf_error(g->conf,
                   mk__conf_origin(g->set, g->settings, offsetof(struct mk__settings, listen),
                                   mk__settings_listen_line(g->settings, narrow)),
                   "Listen %.*s is covered by Listen %.*s%s", MK_STR_ARG(all[narrow].text), MK_STR_ARG(all[wide].text),
                   swapped ? "" : " already");
}

/* Two listeners with one address: the second could not be bound. */
static void check_listen_conflicts(struct mk_generation *g)
{
    const struct mk__listen_confs *all = &g->settings->listen;
    for (uint32_t i = 0; i < all->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (mk__addr_conflicts(&all->items[i].addr, &all->items[k].addr))
                report_listen_conflict(g, i, k);
}

static void read_h2_settings(struct mk_generation *g)
{
    const struct mk__h2_settings *h2 = mk__conf_get(g->set, &mk__section_http2);
    struct mk__conf_origin section = mk__conf_origin(g->set, h2, MK__CONF_SECTION, 0);
    g->http.h2 = h2->on && mk__h2_find() ? h2 : NULL;
    if (h2->on && !g->http.h2 && section.source)
        mk__conf_warn(g->conf, section, "[HTTP2] has no effect: this build has no HTTP/2, clients have HTTP/1.1");
}

/* Refuses a file that the server makes, and would read as a host at the next load. `nth`: of the values of a key. */
static MK_COLD void check_made_file(struct mk_generation *g, struct mk_str path, size_t offset, unsigned nth)
{
    if (mk_generation_is_in_sites(g, path))
        mk__conf_error(g->conf, mk__conf_origin(g->set, g->settings, offset, nth),
                       "%.*s would be a host, as each file of sites/ is: write a path in another folder",
                       MK_STR_ARG(path));
}

static MK_COLD void check_made_files(struct mk_generation *g)
{
    check_made_file(g, g->settings->error_log, offsetof(struct mk__settings, error_log), 0);
    check_made_file(g, g->settings->pid_file, offsetof(struct mk__settings, pid_file), 0);
    for (uint32_t i = 0; i < g->settings->listen.n; i++) {
        const struct mk__addr *addr = &g->settings->listen.items[i].addr;
        if (addr->sa.sa_family == AF_UNIX)
            check_made_file(g, mk_str_c(addr->un.sun_path), offsetof(struct mk__settings, listen), i);
    }
}

static int read_server(struct mk_generation *g, const struct mk__generation_source *source)
{
    g->set = mk__conf_set_new(g->conf, MK_CONF_SCOPE_SERVER);
    if (!g->set)
        return -ENOMEM;
    if (source->file)
        mk__conf_read(g->conf, g->set, source->file);
    else if (source->dir)
        read_server_files(g, source->dir);
    else if (source->program && source->program->text.p)
        mk__conf_read_text(g->conf, g->set, "text", source->program->text);
    apply_overrides(g, g->set, MK_CONF_SCOPE_SERVER, source);
    int err = mk__conf_check(g->conf, g->set);
    g->settings = mk__conf_get(g->set, &mk__section_server);
    if (!g->settings || err == -ENOMEM)
        return -ENOMEM;
    check_made_files(g);
    if (source->program)
        mk__process_keys_warn(g->conf, g->set, g->settings);
    g->workers = g->settings->workers ? (unsigned)g->settings->workers : mk__cpus_count();
    if (source->program && source->program->in_caller)
        g->workers = 1;
    mk__settings_http(g->settings, &g->http);
    for (unsigned i = 0; i < g->n_plugins; i++)
        g->http.times |= (g->plugins[i]->flags & MK_PLUGIN_TIMES) != 0;
    mk__conn_hooks_prepare(g);
    read_h2_settings(g);
    find_transports(g);
    check_listen_conflicts(g);
    return make_mime(g);
}

/* ── hosts ── */

static uint32_t count_names(const struct mk_host *host)
{
    return host->settings ? host->settings->names.n : 0; /* NULL: its file could not be read */
}

static struct mk_host *add_host(struct mk_generation *g)
{
    struct mk_host *host = mk_arena_zalloc(&g->arena, sizeof(*host));
    if (!host)
        return NULL;
    host->generation = g;
    host->set = mk__conf_set_new(g->conf, MK_CONF_SCOPE_HOST);
    if (!host->set)
        return NULL;
    *(g->last_host ? &g->last_host->next : &g->hosts) = host;
    g->last_host = host;
    return host;
}

/* Begins a host within a file; see struct mk__conf_hosts. */
static struct mk__conf_set *begin_host(void *ctx)
{
    struct mk_host *host = add_host(ctx);
    return host ? host->set : NULL;
}

/* Returns whether a section of the plugin has errors, in the server's files or in this host's. */
static bool has_errors(const struct mk_host *host, const struct mk_plugin *plugin)
{
    for (const struct mk_conf_section *s = plugin->sections; s && s->name; s++) {
        bool own = s->scope == MK_CONF_SCOPE_HOST;
        if (mk__conf_has_errors(own ? host->set : host->generation->set, s) ||
            (own && mk__conf_has_errors(host->generation->set, s)))
            return true;
    }
    return false;
}

/* Starts one plugin for a host. After an error the others are started too, to report theirs. Returns 0 or -ENOMEM. */
static int start_host_plugin(struct mk_generation *g, struct mk_host *host, unsigned i)
{
    assert(i < g->n_plugins);
    const struct mk_plugin *plugin = g->plugins[i];
    unsigned before = mk__conf_all_errors(g->conf);
    bool faults = has_errors(host, plugin), ready = g->started & 1u << i;
    if (!ready || (faults && !(plugin->flags & MK_PLUGIN_CHECKS_ALL))) {
        g->failed |= 1u << i;
        return 0;
    }
    int err = plugin->host_start ? plugin->host_start(host, &host->states[i]) : 0;
    if (err == 0)
        host->started |= 1u << i;
    if (!host->states[i])
        host->skipped |= g->skipped & 1u << i;
    if (err < 0 || faults)
        g->failed |= 1u << i;
    /* with faults, or if the plugin has reported an error, the reason is known */
    if (err < 0 && !faults && mk__conf_all_errors(g->conf) == before)
        mk__conf_error(g->conf, (struct mk__conf_origin){0}, "the plugin \"%s\" cannot start: %s", plugin->name,
                       strerror(-err));
    return err == -ENOMEM ? err : 0;
}

static int finish_host(struct mk_generation *g, struct mk_host *host, const struct mk__generation_source *source)
{
    apply_overrides(g, host->set, MK_CONF_SCOPE_HOST, source);
    mk__conf_set_defaults(g->conf, host->set, g->set);
    int err = mk__conf_check(g->conf, host->set);
    host->settings = mk__conf_get(host->set, &mk__section_host);
    if (err == -ENOMEM || !host->settings)
        return -ENOMEM;
    host->limits = g->http.limits;
    mk__settings_limits(&host->settings->limits, &host->limits);
    err = mk__handlers_resolve(g, host);
    if (err == 0)
        err = mk__path_limits_make(g, host);
    for (unsigned i = 0; i < g->n_plugins && err == 0; i++)
        err = start_host_plugin(g, host, i);
    mk__generation_find_first_hook(g, host);
    return err;
}

static bool is_hidden(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return name[0] == '.' || name[strlen(name) - 1] == '~';
}

/* Returns whether a file of sites/ is no host by its name. Those that do not begin with a dot get a warning. */
static bool is_skipped(struct mk_generation *g, const char *path)
{
    const char *what = mk__skipped_files_describe(path);
    if (!what)
        return is_hidden(path);
    mk__conf_warn(g->conf, mk__conf_file_origin(g->conf, path),
                  "this file is skipped: by its name it is %s, not a host", what);
    return true;
}

/* Finishes this host and those after it, which sections within files have begun. */
static int finish_hosts(struct mk_generation *g, struct mk_host *host, const struct mk__generation_source *source)
{
    int err = 0;
    for (; host && err == 0; host = host->next)
        err = finish_host(g, host, source);
    return err;
}

static int read_host(struct mk_generation *g, const struct mk__generation_source *source, struct mk_str path)
{
    if (is_skipped(g, path.p))
        return mk__conf_is_out_of_memory(g->conf) ? -ENOMEM : 0;
    struct mk_host *host = add_host(g);
    int err = host ? mk__conf_read(g->conf, host->set, path.p) : -ENOMEM;
    if (err < 0 && err != -EINVAL)
        g->failed = UINT32_MAX; /* the host's sections are unknown: no plugin can check the whole */
    if (mk_str_ends(path, MK_STR("/default")))
        g->default_host = host;
    if (err == 0 || err == -EINVAL)
        return finish_hosts(g, host, source);
    return err == -ENOMEM ? err : 0;
}

/* Reads the files of sites/. Without that folder there are the hosts of the server's files. */
static int read_sites(struct mk_generation *g, const struct mk__generation_source *source, bool *ret_is_listed)
{
    struct mk_arena arena;
    struct mk_str *files;
    size_t n = 0;
    mk_arena_init(&arena, NULL, GENERATION_BYTES_MAX, NULL, 0);
    int err = mk__file_glob(mk_str_c(source->dir), MK_STR("/sites/*"), MK__FILE_OR_FOLDER, &arena, &files, &n);
    *ret_is_listed = err == 0 || (err == -ENOENT && g->hosts);
    if (err < 0 && err != -ENOMEM) {
        if (!*ret_is_listed)
            mk__conf_error(g->conf, (struct mk__conf_origin){0}, "the folder %s/sites cannot be listed: %s",
                           source->dir, strerror(-err));
        err = 0;
    }
    for (size_t i = 0; i < n && err == 0; i++)
        err = read_host(g, source, files[i]);
    mk_arena_release(&arena);
    return err;
}

/* Returns how well a host answers for names that no host has: at all listeners, and best without a name of its own. */
static unsigned rank_default(const struct mk_host *host)
{
    bool is_known = host->settings; /* else it has errors, which were reported */
    return 1u + 2 * (is_known && !host->settings->listeners.n) + (is_known && !count_names(host));
}

/* Without sites/default the default is one of the hosts of the server's files, the first of those of the best rank. */
static void choose_default_host(struct mk_generation *g, const struct mk_host *first_of_sites)
{
    unsigned best = 0;
    for (struct mk_host *host = g->hosts; host != first_of_sites; host = host->next) {
        unsigned rank = rank_default(host);
        if (rank > best)
            g->default_host = host;
        best = rank > best ? rank : best;
    }
}

static int read_hosts(struct mk_generation *g, const struct mk__generation_source *source)
{
    bool is_listed = false;
    if (!mk__file_exists(source->dir))
        return 0; /* reported already: monkey.conf cannot be read */
    struct mk_host *last = g->last_host;
    int err = finish_hosts(g, g->hosts, source);
    if (err == 0 && !source->file)
        err = read_sites(g, source, &is_listed);
    if (err == 0 && !g->default_host)
        choose_default_host(g, last ? last->next : g->hosts);
    if (err == 0 && source->file && !g->hosts)
        mk__conf_error(g->conf, mk__conf_file_origin(g->conf, source->file),
                       "there is no host: it begins with [HOST example.org], or [HOST] for all names");
    if (err == 0 && is_listed && !g->default_host)
        mk__conf_error(g->conf, (struct mk__conf_origin){0},
                       "%s/sites/default is missing: it answers for every name that no other host has; a section "
                       "[HOST] in monkey.conf does that, too",
                       source->dir);
    return err;
}

static int make_one_shot_host(struct mk_generation *g, const struct mk__generation_source *source)
{
    struct mk_host *host = add_host(g);
    if (!host)
        return -ENOMEM;
    g->default_host = host;
    mk__conf_read_text(g->conf, host->set, "one-shot", MK_STR("[HOST]\n"));
    if (source->root)
        mk__conf_override(g->conf, host->set, "HOST", "DocumentRoot", mk_str_c(source->root), source->root_origin);
    return finish_host(g, host, source);
}

/* The hosts of the program's text. The folder of one-shot mode is the default host, else the first of the text. */
static int read_program_hosts(struct mk_generation *g, const struct mk__generation_source *source)
{
    g->default_host = g->hosts;
    int err = finish_hosts(g, g->hosts, source);
    return err == 0 && (source->root || !g->hosts) ? make_one_shot_host(g, source) : err;
}

static int make_hosts(struct mk_generation *g, const struct mk__generation_source *source)
{
    if (!source->dir)
        return read_program_hosts(g, source);
    return source->root ? make_one_shot_host(g, source) : read_hosts(g, source);
}

/* ── names of hosts ── */

static struct mk__conf_origin origin_of_name(const struct mk_host *host, uint32_t nth)
{
    return mk__conf_origin(host->set, host->settings, offsetof(struct mk__host_settings, names), nth);
}

static void report_duplicate_name(struct mk_generation *g, struct mk__conf_origin origin, struct mk_str name,
                                  const struct mk__vhost *first)
{
    MK_BUF_ON_STACK(place, PATH_BYTES);
    mk__conf_origin_print(origin_of_name(first->host, first->nth), &place);
    mk__conf_error(g->conf, origin, "ServerName \"%.*s\" is in %s already", MK_STR_ARG(name), mk_buf_cstr(&place));
}

static int add_name(struct mk_generation *g, struct mk_host *host, uint32_t nth)
{
    assert(nth < count_names(host));
    struct mk_str name = host->settings->names.items[nth];
    const struct mk__vhost *first;
    const char *reason;
    int err = g->bound ? mk__bound_hosts_add(g, name, host, nth, &reason, &first) : 0;
    if (err == 0 && !host->settings->listeners.n)
        err = mk__vhost_add(&g->vhosts, name, host, nth, &reason, &first);
    if (err == -EINVAL)
        mk__conf_error(g->conf, origin_of_name(host, nth), "ServerName \"%.*s\": %s", MK_STR_ARG(name), reason);
    if (err == -EEXIST)
        report_duplicate_name(g, origin_of_name(host, nth), name, first);
    return err == -ENOMEM ? err : 0;
}

/* No request can reach a host without a name, unless it is the default host. A part of a file is not so by mistake. */
static void report_nameless(struct mk_generation *g, const struct mk_host *host)
{
    const struct mk_host *other = g->default_host;
    struct mk__conf_origin origin = mk__conf_origin(host->set, host->settings, MK__CONF_SECTION, 0);
    MK_BUF_ON_STACK(place, PATH_BYTES);
    if (mk__conf_is_consequence(host->set, host->settings, offsetof(struct mk__host_settings, names), 0))
        return;
    if (!other || !other->settings) /* it has errors, which were reported */
        return;
    mk__conf_origin_print(mk__conf_origin(other->set, other->settings, MK__CONF_SECTION, 0), &place);
    if (origin.source && mk__conf_is_part(host->set)) /* without a place the file has errors, which were reported */
        mk__conf_error(g->conf, origin,
                       "no request can reach this host: it has no name, and the host in %s answers for names that no "
                       "other host has: write [HOST example.org]",
                       mk_buf_cstr(&place));
    else if (origin.source)
        mk__conf_warn(g->conf, origin,
                      "no request can reach this host: it has no \"ServerName\", and is not sites/default");
}

static int make_vhosts(struct mk_generation *g)
{
    size_t n = 0;
    for (const struct mk_host *host = g->hosts; host; host = host->next)
        n += count_names(host);
    int err = mk__vhost_init(&g->vhosts, &g->arena, n);
    if (err == 0)
        err = mk__bound_hosts_prepare(g, n);
    if (err < 0 && err != -ENOMEM)
        mk__conf_error(g->conf, (struct mk__conf_origin){0}, "the system has no random bytes: %s", strerror(-err));
    for (struct mk_host *host = g->hosts; host && err == 0; host = host->next) {
        if (!count_names(host) && !mk__bound_hosts_is_default(host))
            report_nameless(g, host);
        for (uint32_t i = 0; i < count_names(host) && err == 0; i++)
            err = add_name(g, host, i);
    }
    return err == -ENOMEM ? err : 0;
}

/* ── loading and freeing ── */

/* Of plugins with the same slot the last one has it; the others are searched in the list. */
static void fill_plugin_slots(struct mk_generation *g)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        g->plugin_slots[mk__generation_plugin_slot(g->plugins[i])] = (uint8_t)i;
}

static int load_generation(struct mk_generation *g, const struct mk__generation_source *source)
{
    mk_arena_init(&g->arena, NULL, GENERATION_BYTES_MAX, NULL, 0);
    g->conf = mk__conf_new();
    if (!g->conf)
        return -ENOMEM;
    mk__conf_on_host(g->conf, &(struct mk__conf_hosts){"HOST", "ServerName", begin_host, g});
    int err = mk__plugins_read(g, source);
    if (err == 0)
        err = mk__transports_load_needed(g, source);
    if (err == 0)
        mk__generation_find_hooks(g);
    if (err == 0)
        fill_plugin_slots(g);
    if (err == 0)
        err = mk__plugins_declare(g);
    if (err == 0)
        err = read_server(g, source);
    if (err == 0 && source->check_only_supervised && g->settings->supervisor)
        g->check_only = true;
    if (err == 0)
        err = mk__plugins_start(g);
    if (err == 0)
        err = make_hosts(g, source);
    if (err == 0)
        err = make_vhosts(g);
    if (err == 0 && g->hosts) /* without one, which has been reported, plugins have nothing to check */
        err = mk__plugins_check(g);
    if (err == 0)
        mk__content_order_check(g);
    if (err < 0)
        return err;
    return mk__conf_errors(g->conf) || (g->load_conf && mk__conf_errors(g->load_conf)) ? -EINVAL : 0;
}

int mk__generation_load(struct mk_generation *g, const struct mk__generation_source *source)
{
    *g = (struct mk_generation){.refs = 1, .check_only = source->check_only};
    g->in_program = source->program;
    g->drops_root = source->drops_root;
    g->after_root = source->after_root;
    g->was_root = source->was_root;
    g->dir = source->dir;
    g->one_shot = source->root && !source->program;
    mk__module_lock_hooks();
    int err = load_generation(g, source);
    mk__module_unlock_hooks();
    return err;
}

static void stop_generation(struct mk_generation *g)
{
    for (struct mk_host *host = g->hosts; host; host = host->next) {
        for (unsigned i = g->n_plugins; i-- > 0;)
            if (host->started & 1u << i && g->plugins[i]->host_stop)
                g->plugins[i]->host_stop(host, host->states[i]);
        host->started = 0;
    }
    mk__plugins_stop(g);
    mk__spools_put(g);
    g->used = g->started = 0;
    g->stopped = true;
}

void mk__generation_stop(struct mk_generation *g)
{
    if (g->stopped)
        return;
    mk__module_lock_hooks();
    stop_generation(g);
    mk__module_unlock_hooks();
}

bool mk__generation_try_stop(struct mk_generation *g)
{
    if (g->stopped)
        return true;
    if (!mk__module_try_lock_hooks())
        return false;
    stop_generation(g);
    mk__module_unlock_hooks();
    return true;
}

void mk__generation_release(struct mk_generation *g)
{
    assert(g->refs <= 1);
    mk__generation_stop(g);
    if (g->conf)
        mk__conf_free(g->conf);
    if (g->load_conf)
        mk__conf_free(g->load_conf);
    mk__module_close_all(&g->module_list);
    mk_arena_release(&g->arena);
    mk__plugins_close(g);
    *g = (struct mk_generation){0};
}

void mk__generation_free(struct mk_generation **g)
{
    if (!*g)
        return;
    mk__counts_close_hosts(*g);
    mk__generation_release(*g);
    mk_account_free(NULL, *g, sizeof(**g));
    *g = NULL;
}
