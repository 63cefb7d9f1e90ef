// SPDX-License-Identifier: Apache-2.0
/*
 * Answers questions about a loaded generation (server/generation/generation.h), and counts its references.
 * generation_load.c makes it.
 */
#include "server/generation/generation.h"

#include <monkey/hooks.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the host of a name at a listener of this generation; NULL: the listener is not one of them. */
static struct mk_host *find_bound_host(const struct mk_generation *g, const void *listener, struct mk_str name)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++) {
        if (g->settings->listen.items[i].listener != listener)
            continue;
        struct mk_host *host = mk__vhost_find(&g->bound[i].vhosts, name);
        return host ? host : g->bound[i].default_host;
    }
    return NULL;
}

MK_HOT struct mk_host *mk__generation_find_host(const struct mk_generation *g, const void *listener, struct mk_str name)
{
    if (!g->hosts || !g->hosts->next)
        return g->default_host;
    struct mk_host *host = g->bound ? find_bound_host(g, listener, name) : NULL;
    host = host ? host : mk__vhost_find(&g->vhosts, name);
    return host ? host : g->default_host;
}

struct mk_generation *mk__generation_get(struct mk_generation *g)
{
    unsigned before = atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return g;
}

void mk__generation_put(struct mk_generation *g)
{
    unsigned before = atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1 && g->on_unused)
        g->on_unused(g);
}

void mk__generation_diagnostics(const struct mk_generation *g, struct mk_buf *out)
{
    if (g->load_conf)
        mk__conf_diagnostics(g->load_conf, out);
    if (g->conf)
        mk__conf_diagnostics(g->conf, out);
}

/* ── for plugins ── */

bool mk_generation_is_check(const struct mk_generation *g)
{
    return g->check_only;
}

bool mk_generation_drops_root(const struct mk_generation *g, uint32_t *ret_uid, uint32_t *ret_gid)
{
    const struct mk__user *user = &g->settings->user, *group = &g->settings->group;
    if (!g->drops_root || g->check_only || !user->name.p || user->id == 0 || geteuid() != 0)
        return false;
    *ret_uid = user->id;
    *ret_gid = group->name.p ? group->id : user->group;
    return true;
}

MK_COLD bool mk_generation_is_in_sites(const struct mk_generation *g, struct mk_str path)
{
    struct stat sites, folder;
    MK_BUF_ON_STACK(text, PATH_MAX);
    const char *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;
    if (!g->dir || !slash)
        return false;
    mk_buf_addf(&text, "%s/sites", g->dir);
    if (text.err || stat(mk_buf_cstr(&text), &sites) < 0)
        return false;
    text.len = 0;
    mk_buf_addf(&text, "%.*s", (int)(slash + 1 - path.p), path.p);
    return !text.err && stat(mk_buf_cstr(&text), &folder) == 0 && folder.st_dev == sites.st_dev &&
           folder.st_ino == sites.st_ino;
}

bool mk_generation_has_dropped_root(const struct mk_generation *g)
{
    return g->was_root && geteuid() != 0;
}

bool mk_generation_is_after_root(const struct mk_generation *g)
{
    return g->after_root;
}

bool mk_generation_is_one_shot(const struct mk_generation *g)
{
    return g->one_shot;
}

uint32_t mk_generation_number(const struct mk_generation *g)
{
    return g->number;
}

unsigned mk_generation_workers(const struct mk_generation *g)
{
    return g->workers;
}

uint32_t mk_generation_shutdown_timeout_ms(const struct mk_generation *g)
{
    return g->settings->shutdown_timeout_ms;
}

/* ── for plugins that carry connections ── */

struct mk_host *mk_generation_host(const struct mk_generation *g, const void *listener, struct mk_str name)
{
    return mk__generation_find_host(g, listener, name);
}

bool mk_generation_supports_alpn(const struct mk_generation *g, struct mk_str protocol)
{
    if (mk_str_eq(protocol, MK_STR("h2")))
        return g->http.h2;
    return mk_str_eq(protocol, MK_STR("http/1.1"));
}

const struct mk__listen_conf *mk__generation_listen_conf(const struct mk_generation *g,
                                                         const struct mk__listener *listener)
{
    for (uint32_t i = 0; i < g->settings->listen.n; i++)
        if (g->settings->listen.items[i].listener == listener)
            return &g->settings->listen.items[i];
    return NULL;
}

static bool has_transport(const struct mk_generation *g, const struct mk_transport *transport)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (MK_PLUGIN_HOOK(g->plugins[i], interfaces, transport) == transport)
            return true;
    return false;
}

int mk__generation_listen_mode(const struct mk_generation *g, const struct mk__listener *listener,
                               struct mk__listen_mode *ret)
{
    assert(listener);
    const struct mk__listen_conf *own = mk__generation_listen_conf(g, listener);
    *ret = own ? own->mode : mk__listeners_mode(listener);
    return own || (has_transport(g, ret->transport) && !ret->proxy) ? 0 : -ENOTCONN;
}

struct mk_str mk__generation_listener_text(const struct mk_generation *g, const struct mk__listener *listener)
{
    const struct mk__listen_conf *own = mk__generation_listen_conf(g, listener);
    return own ? own->text : listener->name.text;
}

/* Returns the index of the first listener that uses the plugin; the number of listeners if there is none. */
static uint32_t find_listener(const struct mk_generation *g, const struct mk_plugin *plugin)
{
    const struct mk__listen_confs *all = &g->settings->listen;
    uint32_t i = 0;
    while (i < all->n && all->items[i].mode.transport != MK_PLUGIN_HOOK(plugin, interfaces, transport))
        i++;
    return i;
}

int mk_generation_port(const struct mk_generation *g, const struct mk_plugin *plugin)
{
    const struct mk__listen_confs *all = &g->settings->listen;
    uint32_t i = find_listener(g, plugin);
    return i < all->n ? mk__addr_port(&all->items[i].addr) : -ENOENT;
}

void mk_generation_listen_error(struct mk_generation *g, const struct mk_plugin *plugin, const char *sentence)
{
    const struct mk__listen_confs *all = &g->settings->listen;
    uint32_t i = find_listener(g, plugin);
    mk__conf_error(g->conf,
                   mk__conf_origin(g->set, g->settings, offsetof(struct mk__settings, listen),
                                   i < all->n ? all->items[i].line : i),
                   "%s", sentence);
}

/* Returns whether the host has the name or a wildcard for it, at one of its listeners. */
static bool has_bound_name(const struct mk_host *host, struct mk_str name)
{
    const struct mk_generation *g = host->generation;
    for (uint32_t i = 0; i < g->settings->listen.n; i++)
        if (mk__vhost_find(&g->bound[i].vhosts, name) == host)
            return true;
    return false;
}

bool mk_host_has_name(const struct mk_host *host, struct mk_str name)
{
    const struct mk_generation *g = host->generation;
    return name.len && (g->bound ? has_bound_name(host, name) : mk__vhost_find(&g->vhosts, name) == host);
}

struct mk_str mk_host_name(const struct mk_host *host, unsigned n)
{
    return n < host->settings->names.n ? host->settings->names.items[n] : MK_STR_NONE;
}

void mk__generation_find_hooks(struct mk_generation *g)
{
    memset(g->hooks, 0, sizeof(g->hooks));
    g->skipped = g->access = 0;
    for (unsigned i = 0; i < g->n_plugins; i++) {
        const struct mk_plugin *plugin = g->plugins[i];
        const bool has[MK__HOOKS] = {
            [MK__HOOK_HEAD] = plugin->on_head,       [MK__HOOK_REQUEST] = plugin->on_request,
            [MK__HOOK_CONTENT] = plugin->on_content, [MK__HOOK_RESPONSE] = plugin->on_response,
            [MK__HOOK_DONE] = plugin->on_done,
        };
        for (unsigned hook = 0; hook < MK__HOOKS; hook++)
            g->hooks[hook] |= (uint32_t)has[hook] << i;
        g->skipped |= (uint32_t)((plugin->flags & MK_PLUGIN_STATE_NEEDED) != 0) << i;
        g->access |= (uint32_t)((plugin->flags & MK_PLUGIN_DECIDES_ACCESS) != 0) << i;
    }
}

void mk__generation_find_first_hook(const struct mk_generation *g, struct mk_host *host)
{
    if (g->hooks[MK__HOOK_HEAD] & ~host->skipped)
        host->first_hook = MK__HOOK_HEAD;
    else if (g->hooks[MK__HOOK_REQUEST] & ~host->skipped || host->path_limits) /* which are looked up after on_head */
        host->first_hook = MK__HOOK_REQUEST;
    else
        host->first_hook = MK__HOOK_CONTENT;
}
