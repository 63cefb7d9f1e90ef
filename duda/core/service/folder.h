// SPDX-License-Identifier: Apache-2.0
/*
 * The folders of a service: ConfDir, DataDir, LogDir.
 */
#ifndef DUDA_CORE_SERVICE_FOLDER_H
#define DUDA_CORE_SERVICE_FOLDER_H

#include <duda/service.h>
#include <monkey/arena.h>

/* Returns a copy of a folder's path with a slash at its end; of an empty path an empty one. `.p` is NULL on failure. */
struct mk_str folder_dup(struct mk_arena *arena, struct mk_str path);

/* Sets a folder, which must exist, for the current service. Logs failures of `call`. Returns 0 or -1. duda_main(). */
int folder_set(struct duda_string *folder, const char *path, const char *call);

/*
 * Returns the path of a file in a folder, with a NUL. NULL, which is logged: the folder is not set, `file` is absolute
 * or leads out of it, or no memory.
 */
char *folder_join(struct mk_arena *arena, const struct duda_string *folder, const char *file, const char *call);

#endif
