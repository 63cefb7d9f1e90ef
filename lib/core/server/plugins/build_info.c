// SPDX-License-Identifier: Apache-2.0
/*
 * Prints what a build has: its version, its plugins.
 */
#include "server/server.h"

#include "http/h2/h2.h"
#include "server/plugins/module.h"
#include "server/plugins/plugins.h"
#include "version.h"

#include <monkey/hooks.h>

/* Prints the names of the hooks in the order in which they are called. */
static void print_hooks(const struct mk_plugin *plugin, struct mk_buf *out)
{
    const struct {
        const char *name;
        bool is_set;
    } hooks[] = {
        {"transport", MK_PLUGIN_HOOK(plugin, interfaces, transport) != NULL},
        {"on_accept", MK_PLUGIN_HOOK(plugin, connections, on_accept) != NULL},
        {"on_client", MK_PLUGIN_HOOK(plugin, connections, on_client) != NULL},
        {"on_head", plugin->on_head != NULL},
        {"on_request", plugin->on_request != NULL},
        {"on_content", plugin->on_content != NULL},
        {"on_response", plugin->on_response != NULL},
        {"on_done", plugin->on_done != NULL},
        {"on_close", MK_PLUGIN_HOOK(plugin, connections, on_close) != NULL},
        {"reopen", MK_PLUGIN_HOOK(plugin, process, reopen) != NULL},
    };
    const char *blank = "";
    for (size_t i = 0; i < MK_COUNT_OF(hooks); i++) {
        if (!hooks[i].is_set)
            continue;
        mk_buf_addf(out, "%s%s", blank, hooks[i].name);
        blank = " ";
    }
}

static void print_plugin(const struct mk_plugin *plugin, void *ctx)
{
    struct mk_buf *out = ctx;
    mk_buf_addf(out, "    %-11s %s  %s\n", plugin->name, plugin->version, plugin->summary);
    mk_buf_addf(out, "    %-11s ", "");
    print_hooks(plugin, out);
    mk_buf_addc(out, '\n');
    if (MK_PLUGIN_HOOK(plugin, inspection, about)) {
        mk_buf_addf(out, "    %-11s ", "");
        plugin->inspection->about(out);
        mk_buf_addc(out, '\n');
    }
}

const char *mk_version(void)
{
    return MK__VERSION;
}

void mk_build_info(struct mk_buf *out)
{
    mk_buf_addf(out, "monkey %s\nbuild: %s, %s\n", MK__VERSION, MK__BUILD_TYPE, MK__BUILD_COMPILER);
    if (sizeof(MK__BUILD_SANITIZERS) > 1)
        mk_buf_addf(out, "sanitizers: %s\n", MK__BUILD_SANITIZERS);
    mk_buf_addf(out, "http/2: %s\n", mk__h2_find() ? "available" : "not in this build");
    mk_buf_addf(out, "plugins:\n");
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p; p++)
        print_plugin(*p, out);
    if (!mk__module_can_open())
        return;
    mk_buf_addf(out, "plugins in %s:\n", mk_plugin_dir());
    mk__module_each(NULL, print_plugin, out);
    mk_buf_addf(out, "their order without plugins.load:");
    for (const char *const *name = mk__plugin_order; *name; name++)
        mk_buf_addf(out, " %s", *name);
    mk_buf_addc(out, '\n');
}
