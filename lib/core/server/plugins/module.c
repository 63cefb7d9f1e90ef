// SPDX-License-Identifier: Apache-2.0
/*
 * Finds plugins (server/plugins/module.h): in the array that the build makes, and as shared objects, which use the
 * public functions of the program.
 */
#include "server/plugins/module.h"

#include "base/file.h"
#include "version.h"

#include <monkey/arena.h>
#include <monkey/library.h>

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SYMBOL_BYTES = 128, ARENA_BYTES_MAX = 64 * 1024 * 1024 };

const struct mk_plugin *mk__module_find_builtin(struct mk_str name)
{
    for (const struct mk_plugin *const *p = mk__builtin_plugins; *p; p++)
        if (mk_str_ieq(mk_str_c((*p)->name), name))
            return *p;
    return NULL;
}

/* ── start and stop for the process ── */

enum { IN_USE_MAX = 128 };

/*
 * The plugins in use, with the state of their start, under the lock of the hooks. Static, because servers of one
 * process share plugins.
 */
static struct plugin_use {
    const struct mk_plugin *plugin;
    unsigned generations;
    void *state;
} in_use[IN_USE_MAX];
static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;

void mk__module_lock_hooks(void)
{
    pthread_mutex_lock(&hooks_lock);
}

bool mk__module_try_lock_hooks(void)
{
    return pthread_mutex_trylock(&hooks_lock) == 0;
}

void mk__module_unlock_hooks(void)
{
    pthread_mutex_unlock(&hooks_lock);
}

/* Returns the plugin's entry, or a free one for it; NULL: all are in use. */
static struct plugin_use *find_in_use(const struct mk_plugin *plugin)
{
    unsigned slot = IN_USE_MAX;
    for (unsigned i = 0; i < IN_USE_MAX; i++) {
        if (in_use[i].generations && in_use[i].plugin == plugin)
            return &in_use[i];
        if (!in_use[i].generations && slot == IN_USE_MAX)
            slot = i;
    }
    if (slot == IN_USE_MAX)
        return NULL;
    in_use[slot] = (struct plugin_use){.plugin = plugin};
    return &in_use[slot];
}

int mk__module_use_plugin(const struct mk_plugin *plugin, void **ret_state)
{
    struct plugin_use *use = find_in_use(plugin);
    int err = !use ? -ENOBUFS : use->generations == 0 && plugin->start ? plugin->start(&use->state) : 0;
    if (err < 0)
        return err;
    use->generations++;
    *ret_state = use->state;
    return 0;
}

void mk__module_release_plugin(const struct mk_plugin *plugin)
{
    struct plugin_use *use = find_in_use(plugin);
    assert(use && use->generations);
    if (--use->generations == 0 && plugin->stop)
        plugin->stop(use->state);
}

/* ── modules ── */

enum { FOLDER_BYTES = sizeof("/../lib/monkey") };

/* Replaces the name of a file in a path of `len` bytes by `folder`. Returns whether that is a folder. */
static bool find_folder(char *path, size_t len, const char *folder)
{
    struct stat st;
    char *slash = memrchr(path, '/', len);
    if (!slash)
        return false;
    memcpy(slash, folder, strlen(folder) + 1);
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Finds the folder next to the shared library that this function is in: ../lib of a program is not where others are. */
static bool find_beside_library(char *path, size_t size)
{
    static const char *const folders[] = {"/monkey", "/../monkey"};
    Dl_info info;
    char absolute[PATH_MAX];
    if (!dladdr((const void *)mk_plugin_dir, &info) || !info.dli_fname)
        return false;
    const char *file = info.dli_fname[0] == '/' ? info.dli_fname : realpath(info.dli_fname, absolute);
    size_t len = file ? strlen(file) : size;
    for (unsigned i = 0; i < 2 && len + FOLDER_BYTES < size; i++) {
        memcpy(path, file, len + 1);
        if (find_folder(path, len, folders[i]))
            return true;
    }
    return false;
}

const char *mk_plugin_dir(void)
{
    static char beside[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", beside, sizeof(beside) - FOLDER_BYTES);
    if (n > 0 && find_folder(beside, (size_t)n, "/../lib/monkey"))
        return beside;
    return find_beside_library(beside, sizeof(beside)) ? beside : MK__PLUGIN_FOLDER;
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
    if (!plugin->transport) /* connections use a transport without holding the generation */
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
