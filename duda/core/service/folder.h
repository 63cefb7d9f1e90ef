// SPDX-License-Identifier: Apache-2.0
/*
 * The folders of a service: ConfDir, DataDir, LogDir.
 */
#ifndef DUDA_CORE_SERVICE_FOLDER_H
#define DUDA_CORE_SERVICE_FOLDER_H

#include "service/service.h"

#include <duda/service.h>
#include <monkey/base/arena.h>

struct service;

/* Returns a copy of a folder's path with a slash at its end; of an empty path an empty one. `.p` is NULL on failure. */
struct mk_str folder_dup(struct mk_arena *arena, struct mk_str path);

/*
 * The folder of a service that functions of the API use. It is that of `self`, which does not change once duda_main()
 * has returned, unless a service of the original API has set another one in a callback: those last as long as the
 * service.
 */
enum folder_kind { FOLDER_DATA, FOLDER_CONF, FOLDER_KINDS };

struct folder_change {
    struct duda_string path;
    struct folder_change *next; /* the one before */
};

struct folders {
    _Atomic(const struct duda_string *) changed[FOLDER_KINDS]; /* NULL: those of `self` */
    struct folder_change *first;                               /* all of them; under the lock */
    unsigned n;
};

FEATURE_SLOT(folders_of, struct folders, service, FEATURE_FOLDERS)

const struct duda_string *folder_get(struct service *s, enum folder_kind kind);
/*
 * Sets a folder, which must exist, for the current service: in duda_main(), and with the original API in callbacks,
 * too. Logs failures of `call`. Returns 0 or -1.
 */
int folder_set(enum folder_kind kind, const char *path, const char *call);
/* Hook of features.c: frees what callbacks have set. */
void folders_release(struct service *s);

/*
 * Returns the path of a file in a folder, with a NUL. NULL, which is logged: the folder is not set, `file` is absolute
 * or leads out of it, or no memory.
 */
char *folder_join(struct mk_arena *arena, const struct duda_string *folder, const char *file, const char *call);

#endif
