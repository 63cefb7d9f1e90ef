// SPDX-License-Identifier: Apache-2.0
/*
 * The plugins of this build, and modules: plugins in shared objects. The configuration decides which of them run
 * (plugins.c).
 */
#ifndef MK_SERVER_MODULE_H
#define MK_SERVER_MODULE_H

#include <monkey/plugin.h>

/* The built-in plugins; ends with NULL. Made by the build. */
extern const struct mk_plugin *const mk__builtin_plugins[];

/* The names of all plugins of the build, modules too, in the order in which requests pass them; ends with NULL. */
extern const char *const mk__plugin_order[];

/* Returns the built-in plugin of that name, or NULL. */
const struct mk_plugin *mk__module_find_builtin(struct mk_str name);

struct mk__module;

/*
 * Returns the directory of modules that are configured by name alone: ../lib/monkey beside the program, else where they
 * were installed. The string is static.
 */
const char *mk__module_dir(void);

/*
 * Opens a module and checks its interface version. A file that was replaced since it was last opened is another module.
 * Returns 0, or -errno with the reason in `error`. Nothing of the module may be used after mk__module_close().
 */
int mk__module_open(const char *file, struct mk__module **ret_module, const struct mk_plugin **ret_plugin,
                    struct mk_buf *error);
void mk__module_close(struct mk__module *module);

/* Returns why dlopen() would crash or block with this file; NULL: it would not, and reports other errors itself. */
const char *mk__module_check_file(int fd);

/*
 * Count the generations that use a plugin: `start` is called with the first, `stop` after the last. Any thread. The
 * first function returns 0, -ENOBUFS (too many plugins) or the -errno of `start`.
 */
int mk__module_use_plugin(const struct mk_plugin *plugin);
void mk__module_release_plugin(const struct mk_plugin *plugin);

/* Calls `fn` for every module of mk__module_dir(); they stay open until the program ends. */
void mk__module_each(void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx);

#endif
