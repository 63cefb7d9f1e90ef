// SPDX-License-Identifier: Apache-2.0
/*
 * Opens plugins in shared objects (server/plugins/module.h), which use the public functions of the program. Programs
 * that export none have module_open_absent.c instead.
 */
#include "server/plugins/module.h"

#include "base/file.h"
#include "version.h"

#include <monkey/base/arena.h>
#include <monkey/base/library.h>
#include <monkey/hooks.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { SYMBOL_BYTES = 128, ARENA_BYTES_MAX = 64 * 1024 * 1024 };

bool mk__module_can_open(void)
{
    return true;
}

/* Returns "compress" for "/usr/lib/monkey/compress.so". */
static struct mk_str get_module_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    struct mk_str name = mk_str_c(slash ? slash + 1 : file);
    if (name.len > 3 && memcmp(name.p + name.len - 3, ".so", 3) == 0)
        name.len -= 3;
    return name;
}

static int check_abi(const struct mk_plugin *plugin, struct mk_buf *error)
{
    if (plugin->abi == MK_PLUGIN_ABI && plugin->size == sizeof(*plugin))
        return 0;
    mk_buf_addf(error,
                "it was built for another server: its plugin interface is number %u with %u bytes, this one's is "
                "%u with %zu; build it again with the headers of monkey %s",
                plugin->abi, plugin->size, MK_PLUGIN_ABI, sizeof(*plugin), MK__VERSION);
    return -ENOEXEC;
}

static int find_plugin(void *module, struct mk_str name, const struct mk_plugin **ret_plugin, struct mk_buf *error)
{
    char symbol[SYMBOL_BYTES];
    snprintf(symbol, sizeof(symbol), "mk_plugin_%.*s", MK_STR_ARG(name));
    int err = mk_library_find(module, &(struct mk_library_symbol){symbol, ret_plugin}, 1, error);
    if (err < 0)
        mk_buf_addf(error, ", so that it is no plugin of that name");
    return err < 0 ? err : check_abi(*ret_plugin, error);
}

int mk__module_open(const char *file, struct mk__module **ret_module, const struct mk_plugin **ret_plugin,
                    struct mk_buf *error)
{
    void *module = mk_library_open(file, MK_LIBRARY_REPLACED, error);
    const struct mk_plugin *plugin;
    int err = module ? find_plugin(module, get_module_name(file), &plugin, error) : -ENOEXEC;
    if (err < 0 && module)
        mk_library_close(module);
    if (err < 0)
        return err;
    *ret_module = module;
    *ret_plugin = plugin;
    return 0;
}

void mk__module_close(struct mk__module *module, const struct mk_plugin *plugin)
{
    assert(module);
    /* Connections use a transport without holding the generation. */
    if (!MK_PLUGIN_HOOK(plugin, interfaces, transport))
        mk_library_close(module);
}

/* ── all modules ── */

enum { LISTED_MAX = 64 };

struct mk__module_list {
    unsigned n;
    struct {
        struct mk__module *module;
        const struct mk_plugin *plugin;
    } items[LISTED_MAX];
};

static void open_all(struct mk__module_list *list, void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx)
{
    MK_BUF_ON_STACK(error, 256);
    struct mk_arena arena;
    struct mk_str *files;
    size_t n = 0;
    mk_arena_init(&arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    mk__file_glob(mk_str_c(mk_plugin_dir()), MK_STR("/*.so"), MK__FILE_ONLY, &arena, &files, &n);
    for (size_t i = 0; i < n; i++) {
        struct mk__module *module;
        const struct mk_plugin *plugin;
        if (mk__module_open(files[i].p, &module, &plugin, &error) < 0)
            continue;
        if (list && list->n < LISTED_MAX) {
            list->items[list->n].module = module;
            list->items[list->n++].plugin = plugin;
        }
        fn(plugin, ctx);
    }
    mk_arena_release(&arena);
}

void mk__module_each(struct mk__module_list **list, void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx)
{
    bool is_open = list && *list;
    if (list && !*list)
        *list = mk_account_zalloc(NULL, sizeof(**list));
    if (!is_open)
        open_all(list ? *list : NULL, fn, ctx);
    for (unsigned i = 0; is_open && i < (*list)->n; i++)
        fn((*list)->items[i].plugin, ctx);
}

void mk__module_close_all(struct mk__module_list **list)
{
    for (unsigned i = 0; *list && i < (*list)->n; i++)
        mk_library_close((*list)->items[i].module);
    mk_account_free(NULL, *list, sizeof(**list));
    *list = NULL;
}
