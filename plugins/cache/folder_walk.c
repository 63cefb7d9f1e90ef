// SPDX-License-Identifier: Apache-2.0
/*
 * The walk of folder_walk.h. Folders are opened by their paths, as for a request.
 */
#include "folder_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int push_folder(struct folder_walk *w, size_t path_len)
{
    if (w->depth == FOLDER_WALK_DEPTH_MAX)
        return -ENAMETOOLONG;
    int fd = mk_host_open_path(w->host, mk_str(w->path, path_len), MK_OPEN_FOLDER);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        int err = -errno;
        close(fd);
        return err;
    }
    w->levels[w->depth].dir = dir;
    w->levels[w->depth++].path_len = path_len;
    return 0;
}

static void pop_folder(struct folder_walk *w)
{
    closedir(w->levels[--w->depth].dir);
}

int folder_walk_open(struct folder_walk *w, const struct mk_host *host, const struct mk_file_server *server,
                     struct mk_str path)
{
    w->host = host;
    w->server = server;
    w->depth = 0;
    if (path.len >= sizeof(w->path))
        return -ENAMETOOLONG;
    memcpy(w->path, path.p, path.len);
    w->path[path.len] = '\0';
    return server->hides(host, path) ? -ENOENT : push_folder(w, path.len);
}

void folder_walk_close(struct folder_walk *w)
{
    while (w->depth)
        pop_folder(w);
}

static bool is_folder(DIR *dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Makes the path of an entry of the innermost folder. Returns its length; 0: it is left out. */
static size_t compose_path(struct folder_walk *w, const struct dirent *e, bool is_dir)
{
    size_t at = w->levels[w->depth - 1].path_len;
    int n = snprintf(w->path + at, sizeof(w->path) - at, "%s%s", e->d_name, is_dir ? "/" : "");
    if (n >= (int)(sizeof(w->path) - at) || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return 0;
    struct mk_str path = mk_str(w->path, at + (size_t)n);
    bool is_left_out = w->server->hides(w->host, path) || mk_host_is_source(w->host, MK_SOURCE_PATH, path);
    return is_left_out ? 0 : path.len;
}

bool folder_walk_next(struct folder_walk *w, struct mk_str *ret)
{
    *ret = MK_STR("");
    if (!w->depth)
        return false;
    DIR *dir = w->levels[w->depth - 1].dir;
    const struct dirent *e = readdir(dir);
    if (!e) {
        pop_folder(w);
        return true;
    }
    bool is_dir = is_folder(dir, e);
    size_t n = compose_path(w, e, is_dir);
    if (n && is_dir)
        push_folder(w, n); /* one that cannot be read is left out, as for a client */
    else if (n)
        *ret = mk_str(w->path, n);
    return true;
}
