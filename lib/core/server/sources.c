// SPDX-License-Identifier: Apache-2.0
/*
 * Asks the plugins which files of a host are programs, whose bytes are never sent (<monkey/plugin.h>). Left out of
 * small builds.
 */
#include "server/generation.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* What the kernel appends to the name of a file that is open but deleted. */
#define DELETED MK_STR(" (deleted)")

static bool has_hook(const struct mk_host *host, unsigned i)
{
    return host->generation->plugins[i]->is_source && host->states[i];
}

bool mk_host_has_sources(const struct mk_host *host)
{
    unsigned i = 0;
    while (i < host->generation->n_plugins && !has_hook(host, i))
        i++;
    return i < host->generation->n_plugins;
}

bool mk_host_is_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    bool is_source = false;
    assert(name.len && name.p[0] == '/');
    for (unsigned i = 0; i < host->generation->n_plugins && !is_source; i++)
        is_source = has_hook(host, i) && host->generation->plugins[i]->is_source(host, kind, name);
    return is_source;
}

/* Logs once in a process that names are not known: a server without /proc sends no file of these hosts. */
static void log_unknown_name(const struct mk_host *host, int err)
{
    static _Atomic bool is_logged;
    if (!atomic_exchange(&is_logged, true))
        mk_host_log(host, MK_LOG_ERROR,
                    "no file of this host is sent: it may be a program, and /proc/self/fd cannot be read: %s",
                    strerror(err));
}

/* Reads the name that an open file has at this moment. Returns false if it is not known. */
static bool read_name(const struct mk_host *host, int fd, char text[PATH_MAX], struct mk_str *ret)
{
    MK_UNINITIALIZED char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, text, PATH_MAX);
    if (n < 0)
        log_unknown_name(host, errno);
    if (n <= 0 || n == PATH_MAX || text[0] != '/')
        return false;
    *ret = mk_str(text, (size_t)n);
    return true;
}

static bool is_open_source(const struct mk_host *host, enum mk_source_name kind, struct mk_str name)
{
    if (mk_host_is_source(host, kind, name))
        return true;
    bool is_deleted =
        name.len > DELETED.len && mk_str_eq(mk_str(name.p + name.len - DELETED.len, DELETED.len), DELETED);
    return is_deleted && mk_host_is_source(host, kind, mk_str(name.p, name.len - DELETED.len));
}

bool mk_host_is_source_fd(const struct mk_host *host, int fd)
{
    MK_UNINITIALIZED char text[PATH_MAX];
    struct mk_str name;
    return mk_host_has_sources(host) &&
           (!read_name(host, fd, text, &name) || is_open_source(host, MK_SOURCE_FILE, name));
}

bool mk_host_is_source_below(const struct mk_host *host, int fd, int folder_fd, struct mk_str prefix)
{
    MK_UNINITIALIZED char text[PATH_MAX], path[PATH_MAX];
    struct mk_str name, folder;
    if (!mk_host_has_sources(host))
        return false;
    if (!read_name(host, fd, text, &name) || !read_name(host, folder_fd, path, &folder))
        return true;
    if (folder.len == 1)
        folder.len = 0; /* the slash is that of the name */
    if (!mk_str_starts(name, folder) || name.len == folder.len || name.p[folder.len] != '/')
        return false; /* it is elsewhere */
    struct mk_str rest = mk_str(name.p + folder.len, name.len - folder.len);
    if (prefix.len + rest.len > sizeof(path))
        return true;
    memmove(mempcpy(path, prefix.p, prefix.len), rest.p, rest.len);
    return is_open_source(host, MK_SOURCE_PATH, mk_str(path, prefix.len + rest.len));
}
