// SPDX-License-Identifier: Apache-2.0
/*
 * Makes and removes sockets. A server that was killed leaves its folder; the next one removes it.
 */
#include "fastcgi.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    ENTRIES_MAX = 65536, /* of the folder that is swept */
    OLD_SECONDS = 60,    /* a younger folder may be one that a server is about to listen in */
};

/* ── names ── */

/* Writes the name of the socket in a folder. Returns 0 or -ENAMETOOLONG. */
static int get_name(const char *folder, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s%s", folder, SPAWN_SOCKET_NAME);
    return n < (int)sizeof(ret->sun_path) ? 0 : -ENAMETOOLONG;
}

static void remove_both(const char *folder)
{
    struct sockaddr_un name;
    if (get_name(folder, &name) == 0)
        unlink(name.sun_path);
    rmdir(folder);
}

/* ── what others have left ── */

/* Tells whether the folder is one of this user's that nothing has changed for a minute. */
static bool is_old(const char *folder)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) &&
           st.st_mtim.tv_sec + OLD_SECONDS < time(NULL);
}

/* Tells whether nothing listens in the folder. */
static bool is_dead(const char *folder)
{
    struct sockaddr_un name;
    int fd = get_name(folder, &name) < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool is_refused =
        connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0 && (errno == ECONNREFUSED || errno == ENOENT);
    close(fd);
    return is_refused;
}

static void sweep_entry(const char *parent, const char *name)
{
    char path[4096], own[64];
    snprintf(own, sizeof(own), "%s%d-", SPAWN_SOCKET_PREFIX, (int)getpid());
    if (strncmp(name, SPAWN_SOCKET_PREFIX, strlen(SPAWN_SOCKET_PREFIX)) != 0 || strncmp(name, own, strlen(own)) == 0)
        return;
    int n = snprintf(path, sizeof(path), "%s/%s", parent, name);
    if (n < (int)sizeof(path) && is_old(path) && is_dead(path))
        remove_both(path);
}

void spawn_socket_sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    if (!dir)
        return;
    const struct dirent *entry;
    for (int i = 0; i < ENTRIES_MAX && (entry = readdir(dir)); i++)
        sweep_entry(parent, entry->d_name);
    closedir(dir);
}

/* ── one socket ── */

/* Sweeps the folder that the folder of a socket is in. */
static void sweep_parent(const char *folder)
{
    char parent[4096];
    const char *slash = strrchr(folder, '/');
    if (slash && snprintf(parent, sizeof(parent), "%.*s", (int)(slash - folder), folder) < (int)sizeof(parent))
        spawn_socket_sweep(parent);
}

int spawn_socket_open(const char *folder)
{
    struct sockaddr_un name;
    int err = get_name(folder, &name);
    if (err < 0)
        return err;
    sweep_parent(folder);
    if (mkdir(folder, 0700) < 0)
        return -errno;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    err = -errno;
    if (fd >= 0)
        close(fd);
    remove_both(folder);
    return err;
}

void spawn_socket_close(const char *folder, int fd)
{
    close(fd);
    remove_both(folder);
}
