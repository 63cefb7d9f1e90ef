// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the plugins of this build (server/plugins/module.h), starts them for the process, and finds the folder of
 * modules. module_open.c opens these.
 */
#include "server/plugins/module.h"

#include "version.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ── the folder of modules ── */

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
