// SPDX-License-Identifier: Apache-2.0
/*
 * Offers a request that on_content of all plugins has declined to those that forward what is not there
 * (server/hooks/fallback.h).
 */
#include "server/hooks/fallback.h"

#include "http/request.h"
#include "server/worker/thread.h"

#include <monkey/hooks.h>
#include <monkey/plugin.h>

/* Tells whether a plugin takes the request; a line of [HANDLERS] has set the end after the one that it names. */
static bool may_take(const struct mk_request *req, const struct mk_generation *g, unsigned i)
{
    bool has_handler = req->hook_end < MK__HOOK_RESPONSE * MK__PLUGINS_MAX;
    const struct mk_plugin *plugin = g->plugins[i];
    if (!MK_PLUGIN_HOOK(plugin, paths, on_fallback) ||
        (has_handler && req->hook_end != MK__HOOK_CONTENT * MK__PLUGINS_MAX + i + 1))
        return false;
    return !req->has_encoded_slash ||
           (plugin->paths->accepts_encoded_slash &&
            plugin->paths->accepts_encoded_slash(mk_request_host_conf(req), req->path) == MK_ENCODED_SLASH_KEEP);
}

int mk__fallback_call(struct mk_request *req, const struct mk_generation *g)
{
    int r = MK_DECLINED;
    for (unsigned i = 0; i < g->n_plugins && r == MK_DECLINED; i++) {
        if (!may_take(req, g, i))
            continue;
        req->hook = MK__HOOK_CONTENT * MK__PLUGINS_MAX + i;
        r = g->plugins[i]->paths->on_fallback(req);
    }
    return r;
}
