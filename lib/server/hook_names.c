// SPDX-License-Identifier: Apache-2.0
/*
 * The table of server/hook_names.h. request_hooks.c and conn_hooks.c call the hooks.
 */
#include "server/hook_names.h"

static const struct {
    const char *name;
    size_t offset;
} hook_fields[] = {
    {"transport", offsetof(struct mk_plugin, transport)},   {"on_accept", offsetof(struct mk_plugin, on_accept)},
    {"on_head", offsetof(struct mk_plugin, on_head)},       {"on_request", offsetof(struct mk_plugin, on_request)},
    {"on_content", offsetof(struct mk_plugin, on_content)}, {"on_response", offsetof(struct mk_plugin, on_response)},
    {"on_done", offsetof(struct mk_plugin, on_done)},       {"on_close", offsetof(struct mk_plugin, on_close)},
    {"reopen", offsetof(struct mk_plugin, reopen)},
};

static bool has_hook(const struct mk_plugin *plugin, size_t offset)
{
    static const unsigned char nothing[sizeof(void *)];
    return memcmp((const char *)plugin + offset, nothing, sizeof(nothing)) != 0;
}

void mk__hook_names_print(const struct mk_plugin *plugin, struct mk_buf *out)
{
    const char *blank = "";
    for (size_t i = 0; i < sizeof(hook_fields) / sizeof(hook_fields[0]); i++) {
        if (!has_hook(plugin, hook_fields[i].offset))
            continue;
        mk_buf_addf(out, "%s%s", blank, hook_fields[i].name);
        blank = " ";
    }
}
