// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the plugins which files of a host are programs, whose bytes are never sent (<monkey/plugin.h>), and which plugin
 * takes a path by its sections.
 */
#include "server/generation/content_order.h"
#include "server/generation/handlers.h"

#include <monkey/file_cache.h>
#include <monkey/hooks.h>
#include <monkey/program.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* What the kernel appends to the name of a file that is open but deleted. */
#define DELETED MK_STR(" (deleted)")

static bool has_hook(const struct mk_host *host, unsigned i)
{
    return MK_PLUGIN_HOOK(host->generation->plugins[i], sources, is_source) && host->states[i];
}

static bool has_sources(const struct mk_host *host, unsigned i)
{
    const struct mk_plugin *plugin = host->generation->plugins[i];
    return has_hook(host, i) && (!plugin->sources->has_sources || plugin->sources->has_sources(host));
}

bool mk_host_has_sources(const struct mk_host *host)
{
    unsigned i = 0;
    while (i < host->generation->n_plugins && !has_sources(host, i))
        i++;
    return i < host->generation->n_plugins;
}

bool mk_host_is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    bool is_source = false;
    assert(name.len && name.p[0] == '/');
    for (unsigned i = 0; i < host->generation->n_plugins && !is_source; i++)
        is_source = has_hook(host, i) && host->generation->plugins[i]->sources->is_source(host, kind, name);
    return is_source;
}

/* Logs once in a process that names are not known: a server without /proc sends no file of these hosts. */
static void log_unknown_name(const struct mk_host *host, int err)
{
    static _Atomic bool is_logged;
    if (!atomic_exchange(&is_logged, true))
        mk_host_log(host, MK_LOG_ERROR,
                    "no file of this host is sent: it may be a program, and /proc/self/fd cannot be read: %s",
                    strerror(err));
}

/* Reads the name that an open file has at this moment. Returns false if it is not known. */
static bool read_name(const struct mk_host *host, int fd, char text[PATH_MAX], struct mk_str *ret)
{
    MK_UNINITIALIZED char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, text, PATH_MAX);
    if (n < 0)
        log_unknown_name(host, errno);
    if (n <= 0 || n == PATH_MAX || text[0] != '/')
        return false;
    *ret = mk_str(text, (size_t)n);
    return true;
}

static bool is_open_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    if (mk_host_is_source(host, kind, name))
        return true;
    bool is_deleted = name.len > DELETED.len && mk_str_ends(name, DELETED);
    return is_deleted && mk_host_is_source(host, kind, mk_str(name.p, name.len - DELETED.len));
}

bool mk_host_is_source_fd(const struct mk_host *host, int fd)
{
    MK_UNINITIALIZED char text[PATH_MAX];
    struct mk_str name;
    return mk_host_has_sources(host) &&
           (!read_name(host, fd, text, &name) || is_open_source(host, MK_SOURCE_FILE, name));
}

bool mk_host_is_source_below(const struct mk_host *host, int fd, int folder_fd, struct mk_str prefix)
{
    MK_UNINITIALIZED char text[PATH_MAX], path[PATH_MAX];
    struct mk_str name, folder;
    if (!mk_host_has_sources(host))
        return false;
    if (!read_name(host, fd, text, &name) || !read_name(host, folder_fd, path, &folder))
        return true;
    if (folder.len == 1)
        folder.len = 0; /* the slash is that of the name */
    if (!mk_str_starts(name, folder) || name.len == folder.len || name.p[folder.len] != '/')
        return false; /* it is elsewhere */
    struct mk_str rest = mk_str(name.p + folder.len, name.len - folder.len);
    if (prefix.len + rest.len > sizeof(path))
        return true;
    memmove(mempcpy(path, prefix.p, prefix.len), rest.p, rest.len);
    return is_open_source(host, MK_SOURCE_PATH, mk_str(path, prefix.len + rest.len));
}

/* ── sections ── */

/* A section with a Match that has a path. */
struct matching {
    const struct mk_conf_section *type;
    const void *conf;
    const struct mk_pattern *match;
};

/* Finds the first section of the plugin that has the path. Returns false if there is none, or it is not known. */
static bool find_section(const struct mk_host *host, const struct mk_plugin *plugin, struct mk_str path,
                         struct matching *ret)
{
    for (const struct mk_conf_section *s = plugin->sections; s && s->name; s++) {
        const struct mk_conf_key *key = mk__content_order_match_key(s);
        const void *conf = NULL;
        if (key && mk_host_conf_match(host, s, key->offset, path, &conf) < 0)
            return false;
        if (!conf)
            continue;
        *ret = (struct matching){s, conf, (const void *)((const char *)conf + key->offset)};
        return true;
    }
    return false;
}

bool mk_host_runs_source(const struct mk_host *host, struct mk_str path)
{
    const struct mk__handler *handler;
    if (mk__handlers_find(host, path, &handler) < 0)
        return false;
    for (unsigned i = 0; i < host->generation->n_plugins; i++) {
        const struct mk_plugin *plugin = host->generation->plugins[i];
        struct matching section;
        if (has_hook(host, i) && plugin->on_content && (!handler || handler->index == i) &&
            plugin->sources->is_source(host, MK_SOURCE_PATH, path) && find_section(host, plugin, path, &section))
            return true;
    }
    return false;
}

/* Tells whether a plugin takes GET of a path by a section. */
static bool takes_path(const struct mk_host *host, unsigned i, struct mk_str path)
{
    const struct mk_plugin *plugin = host->generation->plugins[i];
    struct matching section;
    return MK_PLUGIN_HOOK(plugin, inspection, takes_section) && host->states[i] &&
           find_section(host, plugin, path, &section) &&
           plugin->inspection->takes_section(host, section.type, section.conf) &&
           !mk_host_prefers_files(host, section.match, path);
}

bool mk_host_asks_files(const struct mk_host *host, struct mk_str path)
{
    const struct mk_generation *g = host->generation;
    const struct mk__handler *handler;
    int err = mk__handlers_find(host, path, &handler);
    unsigned i = 0;
    if (err < 0 || handler)
        return err == 0 && MK_PLUGIN_HOOK(g->plugins[handler->index], interfaces, file_server);
    while (i < g->n_plugins && !MK_PLUGIN_HOOK(g->plugins[i], interfaces, file_server) && !takes_path(host, i, path))
        i++;
    return i < g->n_plugins && MK_PLUGIN_HOOK(g->plugins[i], interfaces, file_server);
}

bool mk_host_denies_path(const struct mk_host *host, struct mk_str path)
{
    const struct mk_generation *g = host->generation;
    bool is_denied = false;
    for (unsigned i = 0; i < g->n_plugins && !is_denied; i++)
        is_denied = MK_PLUGIN_HOOK(g->plugins[i], paths, denies_path) && host->states[i] &&
                    g->plugins[i]->paths->denies_path(host, path);
    return is_denied;
}

void mk_host_each_program(const struct mk_host *host, mk_program_fn fn, void *ctx)
{
    for (unsigned i = 0; i < host->generation->n_plugins; i++)
        if (MK_PLUGIN_HOOK(host->generation->plugins[i], sources, each_program) && host->states[i])
            host->generation->plugins[i]->sources->each_program(host, fn, ctx);
}

/* Tells whether all paths of a pattern are of those of another one, which has further paths. */
static bool is_within(const struct mk_pattern *inner, const struct mk_pattern *outer)
{
    return mk_pattern_covers(outer, inner) && !mk_pattern_covers(inner, outer);
}

bool mk_host_prefers_files(const struct mk_host *host, const struct mk_pattern *match, struct mk_str path)
{
    const struct mk_generation *g = host->generation;
    const struct mk__handler *handler = NULL;
    if (match->kind != MK_PATTERN_PREFIX || (host->handlers.n && mk__handlers_find(host, path, &handler) < 0))
        return false;
    if (handler)
        return MK_PLUGIN_HOOK(g->plugins[handler->index], interfaces, file_server) && is_within(&handler->match, match);
    const struct mk_file_server *files = mk_generation_file_server(g);
    const struct mk_pattern *alias = files ? files->find_alias(host, path) : NULL;
    return alias && is_within(alias, match);
}

const struct mk_pattern *mk_host_handler(const struct mk_host *host, const struct mk_plugin *plugin, unsigned n)
{
    for (uint32_t i = 0; i < host->handlers.n; i++)
        if (host->generation->plugins[host->handlers.items[i].index] == plugin && n-- == 0)
            return &host->handlers.items[i].match;
    return NULL;
}
