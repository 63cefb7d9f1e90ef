// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the files (server/generation/unread_files.h).
 */
#include "server/generation/unread_files.h"

#include "base/file.h"
#include "server/plugins/module.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { ARENA_BYTES_MAX = 64 * 1024 * 1024, PATH_BYTES = 4096 };

/* Returns NAME of .../NAME/NAME.conf; empty: it is another file, which may be included by one that is read. */
static struct mk_str find_plugin_name(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    size_t len = strlen(name) - strlen(".conf");
    const char *folder = name - 1 - len;
    bool is_own = folder > path && folder[-1] == '/' && memcmp(folder, name, len) == 0;
    return is_own ? mk_str(name, len) : MK_STR_NONE;
}

/* The case of letters counts, as it does for names of files. */
static bool is_loaded(const struct mk_generation *g, struct mk_str name)
{
    for (unsigned i = 0; i < g->n_plugins; i++)
        if (mk_str_eq(mk_str_c(g->plugins[i]->name), name))
            return true;
    return false;
}

/* Returns whether the file has a section; in one whose lines are all comments nothing is lost. */
static bool has_section(const char *path)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof(line), file))
        found = line[strspn(line, " \t")] == '[';
    if (file)
        fclose(file);
    return found;
}

/* Without plugins.load, files of the configuration decide what is loaded: one that cannot be read is an error. */
static void report_unreadable(struct mk_generation *g, const char *dir)
{
    for (unsigned i = 0; mk__plugin_order[i]; i++) {
        const char *name = mk__plugin_order[i];
        char path[PATH_BYTES];
        snprintf(path, sizeof(path), "%s/plugins/%s/%s.conf", dir, name, name);
        if (is_loaded(g, mk_str_c(name)) || mk__file_is_missing(path)) /* read before, or no file */
            continue;
        if (access(path, R_OK) < 0)
            mk__conf_error(g->conf, mk__conf_file_origin(g->conf, path),
                           "this file cannot be read, so that it is not known whether its plugin is wanted: %s",
                           strerror(errno));
    }
}

void mk__unread_files_warn(struct mk_generation *g, const char *dir)
{
    if (!g->load_conf)
        report_unreadable(g, dir);
    struct mk_arena arena;
    struct mk_str *files;
    size_t n = 0;
    mk_arena_init(&arena, NULL, ARENA_BYTES_MAX, NULL, 0);
    if (mk__file_glob(mk_str_c(dir), MK_STR("/plugins/*/*.conf"), MK__FILE_SKIP_UNREADABLE, &arena, &files, &n) ==
        -ENOMEM)
        mk__conf_out_of_memory(g->conf);
    for (size_t i = 0; i < n; i++) {
        const char *path = files[i].p;
        struct mk_str name = find_plugin_name(path);
        if (name.len && !is_loaded(g, name) && has_section(path))
            mk__conf_warn(g->conf, mk__conf_file_origin(g->conf, path),
                          "this file is not read, and has no effect: no plugin \"%.*s\" is loaded%s", MK_STR_ARG(name),
                          g->load_conf ? ", for which plugins.load needs a line Load" : "");
    }
    mk_arena_release(&arena);
}
