// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins of this build, and those that lie in files of their own (modules). Which of them run is decided by
 * the configuration (generation.c).
 */
#ifndef MK_SERVER_MODULE_H
#define MK_SERVER_MODULE_H

#include <monkey/plugin.h>

/* Ends with NULL; made by the build. */
extern const struct mk_plugin *const mk__builtin_plugins[];

/* The names of all plugins that were built together, modules too, in the order in which requests pass them. */
extern const char *const mk__plugin_order[];

/* A built-in one; NULL when there is none of that name. */
const struct mk_plugin *mk__module_find_builtin(struct mk_str name);

struct mk__module;

/* Where modules lie that are called by their name alone: beside the program, else where they were installed. */
const char *mk__module_dir(void);

/*
 * Opens a module and checks that it fits. A file that has been replaced since it was opened last is another module. 0,
 * or -errno with a phrase in `error`. Nothing of it may be used after mk__module_close().
 */
int mk__module_open(const char *file, struct mk__module **ret_module, const struct mk_plugin **ret_plugin,
                    struct mk_buf *error);
void mk__module_close(struct mk__module *module);

/* Why dlopen() would not survive this file, or wait for ever; NULL: it survives, or says itself what is wrong. */
const char *mk__module_check_file(int fd);

/*
 * A generation begins to use a plugin, or does so no more: its start comes with the first one, its stop after the
 * last. Any thread. 0 or the start's -errno.
 */
int mk__module_use_plugin(const struct mk_plugin *plugin);
void mk__module_release_plugin(const struct mk_plugin *plugin);

/* Shows every module of the folder to `fn`; they stay open until the program ends. */
void mk__module_each(void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx);

#endif
