// SPDX-License-Identifier: Apache-2.0
/* For programs that export no functions (MK_EXPORT): modules cannot be opened. */
#include "server/plugins/module.h"

#include <errno.h>

bool mk__module_can_open(void)
{
    return false;
}

int mk__module_open(const char *file, struct mk__module **ret_module, const struct mk_plugin **ret_plugin,
                    struct mk_buf *error)
{
    (void)file, (void)ret_module, (void)ret_plugin;
    mk_buf_addf(error, "this build has no modules");
    return -ENOEXEC;
}

void mk__module_close(struct mk__module *module, const struct mk_plugin *plugin)
{
    (void)module, (void)plugin; /* none was opened */
}

void mk__module_each(struct mk__module_list **list, void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx)
{
    (void)list, (void)fn, (void)ctx;
}

void mk__module_close_all(struct mk__module_list **list)
{
    (void)list;
}
