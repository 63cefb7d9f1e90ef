// SPDX-License-Identifier: Apache-2.0
/*
 * Walks through a folder of a host and those below it, and returns the paths of what may be files. Folders behind links
 * are left out, so that there are no circles. On disk threads.
 */
#ifndef CACHE_FOLDER_WALK_H
#define CACHE_FOLDER_WALK_H

#include "path_list.h"

#include <dirent.h>
#include <monkey/file_cache.h>

enum { FOLDER_WALK_DEPTH_MAX = 32 };

struct folder_walk {
    const struct mk_host *host;
    const struct mk_file_server *server;
    unsigned depth;
    struct {
        DIR *dir;
        size_t path_len; /* of the folder, with its slash */
    } levels[FOLDER_WALK_DEPTH_MAX];
    char path[PATH_BYTES];
};

/* Opens the folder of a path with a slash at its end. Returns 0, -ENOENT and similar, or another -errno. */
int folder_walk_open(struct folder_walk *w, const struct mk_host *host, const struct mk_file_server *server,
                     struct mk_str path);
void folder_walk_close(struct folder_walk *w);
/*
 * Finds the next path, which has a NUL after it and is valid until the next call. Returns false at the end. `*ret`
 * without bytes: there was an entry that is left out; call it again.
 */
bool folder_walk_next(struct folder_walk *w, struct mk_str *ret);

#endif
