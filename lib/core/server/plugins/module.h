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

struct mk__module; /* the handle of dlopen() */

/* Returns whether this build can open modules. */
bool mk__module_can_open(void);

/*
 * Opens a module and checks its interface version. A file that was replaced since it was last opened is another module.
 * Returns 0, or -errno with the reason in `error`. Nothing of the module may be used after mk__module_close(),
 * which leaves transports open.
 */
int mk__module_open(const char *file, struct mk__module **ret_module, const struct mk_plugin **ret_plugin,
                    struct mk_buf *error);
void mk__module_close(struct mk__module *module, const struct mk_plugin *plugin);

/*
 * The lock of the hooks that concern the configuration (start, generation_start, host_start, generation_check, their
 * stops, reopen): one thread at a time calls them, in the whole process, because servers share plugins. A load holds it
 * from its first hook to its last. Any thread; the second function returns false if another thread holds it.
 */
MK_COLD void mk__module_lock_hooks(void);
MK_COLD bool mk__module_try_lock_hooks(void);
MK_COLD void mk__module_unlock_hooks(void);

/*
 * Count the generations that use a plugin: `start` is called with the first, `stop` after the last. The caller holds
 * the lock of the hooks. The first function returns 0 and the state of `start`, -ENOBUFS (too many plugins) or the
 * -errno of `start`.
 */
MK_COLD int mk__module_use_plugin(const struct mk_plugin *plugin, void **ret_state);
MK_COLD void mk__module_release_plugin(const struct mk_plugin *plugin);

/*
 * Calls `fn` for every module of mk_plugin_dir(). They stay open until mk__module_close_all(), and are not opened again
 * for the same list; with NULL, or without memory, they stay open until the program ends.
 */
struct mk__module_list;
void mk__module_each(struct mk__module_list **list, void (*fn)(const struct mk_plugin *plugin, void *ctx), void *ctx);
/* Closes the modules of a list, of which nothing is in use any more, and frees it. */
void mk__module_close_all(struct mk__module_list **list);

#endif
